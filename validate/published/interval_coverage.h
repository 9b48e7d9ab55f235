// Do the intervals of predicted step times hold as many truths as they say, and how wide are they?
#pragma once

#include <cstddef>
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
  // As `inside`, each table's rows by the deviation that the other tables' rows of the kind give: nothing where the
  // kind has one table.
  std::optional<double> inside_held_out;
  // What program_deviation(job) would have to be, by these rows; 0 of all kinds.
  double deviation = 0;
};

// Over step times to which nothing was fitted: of tables in halves the judged half. By kind of job, then of all.
std::vector<IntervalCoverage> interval_coverage(const std::vector<PublishedResult>& results);

// The smallest deviation with which the interval of 80 % of ceil(0.8 (n + 1)) of these rows, or of all where that is
// more than n, holds what was measured. `program`: the deviation that is in their intervals now.
double conformal_deviation(const std::vector<PublishedResult>& rows, double program);

}  // namespace memwall
