// The allocator of device memory that a run has, as planners need it: a plan keeps to a budget where this one finds room
// for it.
#pragma once

#include <string>

namespace memwall {

struct PlanAllocator {
  std::string name = "pytorch";  // of run_allocator_names() (sim/engine/simulation.h)
  // Of "pytorch", and of pinned host memory, as parse_allocator_settings (sim/memory/allocator_settings.h) reads them.
  std::string settings{};
};

}  // namespace memwall
