// What a plan has to keep to.
#pragma once

#include "sim/policy/plan_allocator.h"
#include "sim/units.h"

namespace memwall {

struct Budget {
  Bytes device = 0;  // that the step's storages may take at once, in blocks as the allocator holds them
  PlanAllocator allocator{};
  // The step of a plan that is known: one that makes it longer is of no use, and need not be looked for.
  Duration worth = kNever;
  // A plan that shows for which budget such plans keep to this one will do: little time is spent on it.
  bool roughly = false;
};

}  // namespace memwall
