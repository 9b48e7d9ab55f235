// Do the intervals of predicted step times hold as many truths as they say, and how wide are they?
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "validate/published/published.h"

namespace memwall {

struct IntervalCoverage {
  std::optional<JobKind> job;  // nothing: of all kinds
  std::size_t rows = 0;
  double inside = 0;      // share of them whose measured time is in the interval
  double half_width = 0;  // median of ln(high / low) / 2
  // How many of them deviations are calibrated on: all, or of fitted constants the rows that have some.
  std::size_t calibrating = 0;
  // Of these rows, by the deviations that the other tables' rows give, the host's among them: nothing where no kind has
  // two.
  std::optional<double> inside_held_out;
  // What program_deviation(job), or fitted_program_deviation(job), would have to be, by these rows; 0 of all kinds.
  ProgramDeviation deviation;
};

// With the constants that were fitted to a table's other half where there are some, or with none, as everybody has it
// who asks of a job that no table holds.
enum class CoverageOf : std::uint8_t { unfitted, fitted };

// Over step times to which nothing was fitted: of tables in halves the judged half. By kind of job, then of all.
std::vector<IntervalCoverage> interval_coverage(const std::vector<PublishedResult>& results, CoverageOf which);

// The smallest deviations, by their sum, with which the intervals of 80 % of ceil(0.8 (n + 1)) of n rows, or of all
// where that is more than n, hold what was measured. `program`: those that are in their intervals now.
ProgramDeviation conformal_deviation(const std::vector<PublishedResult>& rows, ProgramDeviation program);

// Rows without constants half of whose critical path is the host's.
struct HostCoverage {
  std::size_t rows = 0;
  double inside = 0;           // share of them whose measured time is in the interval
  ProgramDeviation deviation;  // what host_deviation() would have to be, by these rows alone
};
HostCoverage host_coverage(const std::vector<PublishedResult>& results);

// Pairs of rows of one table whose job is the same but for batch and number of GPUs, on two kinds of GPU, each way: how
// far what was measured on one says the other by the ratio of predictions without constants (several rows of a GPU:
// their median).
struct CarriedCoverage {
  std::size_t pairs = 0;
  double inside = 0;     // within exp(+- 1.2816 carried_deviation())
  double median = 0;     // |ln|
  double deviation = 0;  // what carried_deviation() would have to be, by these pairs
};
CarriedCoverage carried_coverage(const std::vector<PublishedResult>& results);

}  // namespace memwall
