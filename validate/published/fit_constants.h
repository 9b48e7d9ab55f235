// Fits FrameworkConstants to the fitted half of a table's rows. The judged half is not looked at.
#pragma once

#include <cstddef>
#include <functional>
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

// The constants that bring those of the rows nearest to `measured`. One after another (kernels, network, host; twice):
// the rows are simulated at four values of the constant, their logarithms interpolated on lines between, and the best
// of the values in steps of 0.5 % is taken. A constant that gains less than 1e-3 stays as it is; one that moves no row
// by 0.1 % is not tried further. `how_many` of them, in that order. Deterministic.
FittedConstants fit_constants(const std::vector<double>& measured, const StepTimes& step_times, std::size_t how_many);

// Of one table's cases: step times of those with Half::fitted, one constant to two rows, rounded up, at most. All 1
// where there are none.
FittedConstants fit_constants(const std::vector<PublishedCase>& cases);

}  // namespace memwall
