// The allocator of device memory that a run has, as planners need it: a plan keeps to a budget where this one finds room
// for it.
#pragma once

#include <string>

#include "sim/memory/allocator_settings.h"

namespace memwall {

struct PlanAllocator {
  std::string name = "pytorch";  // of run_allocator_names()
  AllocatorSettings settings{};  // of "pytorch", and of pinned host memory
};

}  // namespace memwall
