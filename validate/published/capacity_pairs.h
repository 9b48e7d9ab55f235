// Would a job fit? Pairs made of the published peaks: a memory of which the measured peak takes all but 5 %, in which
// the job fits, and one that it exceeds by 5 %, in which it does not. The predicted peak says which of the two it is.
//
// Peaks are compared with capacities in the statistic of their table: of reserved bytes and of what nvidia-smi shows a
// part may be cache, which an allocator gives back before it fails, so that in the second memory the job itself may
// run, slower. What is asked is whether the figure that was measured is on the right side.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "validate/published/published.h"

namespace memwall {

inline constexpr double kCapacityMargin = 0.05;  // of the capacity

struct CapacityPairs {
  std::string table;          // "" = all of them
  std::size_t rows = 0;       // predicted peaks: each is a memory in which it fits, and one in which it does not
  std::size_t fit_right = 0;  // of the former, those that the prediction calls so
  std::size_t no_fit_right = 0;
  // Shares of the memories of one kind that are told. REQUIRES: rows > 0.
  double fit_recall() const { return static_cast<double>(fit_right) / static_cast<double>(rows); }
  double no_fit_recall() const { return static_cast<double>(no_fit_right) / static_cast<double>(rows); }
};

// By table, in the order in which they appear, then of all; none where no peak is predicted.
std::vector<CapacityPairs> capacity_pairs(const std::vector<PublishedResult>& results);

}  // namespace memwall
