// Tables to which constants are fitted: the first half of the usable rows, by line, is fitted, the second judged,
// beside a model that knows one number.
//
// The null model gives every row of a table and GPU the same utilization (model FLOPs per second over the GPU's peak),
// the median of the fitted rows; a GPU without a fitted row takes that of all fitted rows of the table. A table of
// fewer than four usable rows is judged whole: nothing is fitted to it, and there is no null.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "validate/published/published.h"

namespace memwall {

inline constexpr std::size_t kFewestHalved = 4;  // usable rows

// Says of each usable case of one table (that is predicted: why_not is "") which half it belongs to. Of an odd number
// the judged half has one more.
void halve(std::vector<PublishedCase>& cases);

// Spearman's rank correlation; equal values share the mean of their ranks. Nothing for fewer than two pairs, or where
// one side is the same throughout. REQUIRES: as many of both.
std::optional<double> rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

struct JudgedErrors {
  std::size_t rows = 0;
  double median = 0, p90 = 0;         // of |error|; p90 by nearest rank
  std::optional<double> null_median;  // of the null model's |error|
};

// What was fitted to the rows of a table on one GPU.
struct FittedGpu {
  std::string gpu;
  std::size_t rows = 0;
  FrameworkConstants constants;
};

// Of one table: its step times, or the rates of one whose order alone counts.
struct JudgedTable {
  std::string table;
  Protocol protocol = Protocol::halves;
  std::vector<FittedGpu> constants;
  JudgedErrors fitted, judged;
  std::optional<double> order;  // rank correlation of the judged rows' step times (of rates, where only those count)
  std::optional<double> order_of_all;  // of all rows
  std::size_t not_predicted = 0;
  std::size_t fits_right = 0, fits_told = 0;  // rows that say whether the job had memory enough
};

// In the order in which the tables appear.
std::vector<JudgedTable> judged_tables(const std::vector<PublishedResult>& results);

// The null model's step time of each result, in their order; nothing where it has none.
std::vector<std::optional<double>> null_seconds(const std::vector<PublishedResult>& results);

}  // namespace memwall
