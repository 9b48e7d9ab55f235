// What comes of a memory plan where it was made: the figures of its simulation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/units.h"

namespace memwall {

// Bytes that copies move from one tier to another, in all steps of the trace.
struct ExpectedCopies {
  std::string from, to;
  Bytes bytes = 0;

  bool operator==(const ExpectedCopies&) const = default;
};

// Of the whole step as it runs, with what policies before the plan have added to it.
struct PlanExpectation {
  std::string machine, allocator;  // with overrides and settings
  bool fits = true;                // else the figures take memory as unlimited
  Bytes over_budget = 0;  // that the plan takes beyond the budget that its planner was given; 0 = none, or kept
  Bytes peak_requested = 0;        // of the GPU's memory, as requested at the instant of the highest allocated
  Bytes peak_reserved = 0;
  Duration step_time{};              // mean over the steps
  std::uint64_t recomputed_ops = 0;  // on the device, in all steps
  Duration recompute_time{};         // of these, one after the other
  std::vector<ExpectedCopies> copies{};

  bool operator==(const PlanExpectation&) const = default;
};

}  // namespace memwall
