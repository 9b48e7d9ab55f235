// Fits FrameworkConstants to the fitted half of a table's rows. The judged half is not looked at.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "validate/published/published.h"

namespace memwall {

struct FittedConstants {
  FrameworkConstants constants;
  std::size_t rows = 0;          // that they were fitted to
  double before = 0, error = 0;  // mean of |ln(predicted / measured)| over them: with all 1, and with these
};

// Step times of the rows, in seconds, with these constants.
using StepTimes = std::function<std::vector<double>(const FrameworkConstants&)>;

// The constants that bring those of the rows nearest to `measured`, begun at `from`. One after another (products,
// network, host; twice): the rows are simulated at four values of the constant, their logarithms interpolated on lines
// between, and the best of the values in steps of 0.5 % is taken. A constant that gains less than 1e-3 stays as it is;
// one that moves no row by 0.1 % is not tried further. `how_many` of them, in that order. Where the host is one of
// them, once more from a host three times as slow: products that made up for it would not be given up one constant at a
// time. Deterministic.
FittedConstants fit_constants(const std::vector<double>& measured, const StepTimes& step_times, std::size_t how_many,
                              const FrameworkConstants& from = {});

struct FittedRows {
  std::string table, gpu;
  FittedConstants fit;
};

// Of each table's cases with Half::fitted, by GPU, to their step times: one constant to two rows at most, rounded up.
// In order of tables and rows.
std::vector<FittedRows> fit_tables(const std::vector<PublishedCase>& cases);

}  // namespace memwall
