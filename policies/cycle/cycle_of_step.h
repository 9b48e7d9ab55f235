// The cycle of a step: its main stream's work in order as slots, its device storages with their touches.
#pragma once

#include <vector>

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/step_cycle.h"
#include "policies/profile/step_profile.h"

namespace memwall {

// Where a slot stands in the host program: at an op, or at a re-run right before it.
struct SlotPlace {
  OpId op = kNoOp;
  std::uint32_t reruns = 0;  // at the same op, before this slot
  bool is_rerun = false;
};

struct CycledStep {
  CycleProgram program;
  std::vector<SlotPlace> places;    // by slot
  std::vector<StorageId> storages;  // by storage of the cycle; twice where a re-run makes its content again
  // By storage of the trace: a re-run behind its end may start from it, and then it stays until that. Empty: none.
  std::vector<bool> kept{};
  std::vector<std::uint32_t>
      slot_of;  // by op of the trace: its own slot, or the next behind it; may be the number of slots
};

// The main stream is that with most work. What other streams and the host touch counts as touched in the slot behind
// it and, where it writes, may not be moved. Throws UsageError where the step has no work on the device.
CycledStep cycle_of_step(const StepProfile& profile);

// Between device memory and the named tiers ("host", "nvme", ...), in this order. Throws UsageError where the machine
// lacks one or a way to it.
CycleLinks links_of_machine(const Machine& machine, const std::vector<std::string>& tiers);

}  // namespace memwall
