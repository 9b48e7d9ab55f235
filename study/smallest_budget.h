// The smallest budget of device memory that a plan is found for: the range between one that nothing fits into and one
// that something does is cut into four again and again.
//
// What a planner finds proves nothing of other budgets: where it finds nothing that fits, it may find something at a
// smaller one. Of the budgets tried the smallest that fits is told.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "sim/units.h"

namespace memwall {

struct SmallestBudget {
  Bytes bytes = 0;        // 0 = none was found
  std::size_t tries = 0;  // plans that were made
};

// Do plans for these budgets fit? One answer for each.
using FitsWithin = std::function<std::vector<bool>(const std::vector<Bytes>&)>;

// `fails`: nothing fits into it; `fits`: something does. Budgets are tried in whole `unit`s until the range is at most
// `resolution`. REQUIRES: 0 <= fails, 1 <= unit.
SmallestBudget find_smallest_budget(Bytes fails, Bytes fits, Bytes resolution, Bytes unit, const FitsWithin& fit);

}  // namespace memwall
