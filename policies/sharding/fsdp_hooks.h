// Where in the host program the hooks of FSDP's units run.
//
// | hook | place |
// |---|---|
// | pre_forward | before the first op of a call of the unit's module in forward |
// | post_forward | after the last one |
// | pre_backward | before the first op of the unit's backward, its re-run (activation checkpointing) included |
// | post_backward | after the last one, and after its last gradient is ready |
// | end_backward | at the end of a backward pass: the root's final callback |
//
// The root's forward is the whole forward pass. Its post_backward runs at the end of backward: its inputs need no
// gradient, so the final callback runs it, and after it that of each unit of which the same holds (an embedding's);
// version 1 runs it where the views of its flat parameter, which are made before all others, give back their gradient,
// and has no such callback for units. With its forward_prefetch the views of a unit are made before the unit in front
// of it computes, so that its post_backward runs behind that one's backward. A call ends where an op of a unit that is
// neither around nor within it comes. A re-run that does not lead into the unit's own backward (of several units at
// once) is a call of forward: PyTorch passes over the hooks of forward only while the unit itself is in backward.
// Source: pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_state.py (_root_post_backward_final_callback);
// version 1: torch/distributed/fsdp/_runtime_utils.py (_register_post_backward_hook).
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "policies/sharding/fsdp_settings.h"
#include "policies/sharding/fsdp_units.h"
#include "policies/sharding/zero_analysis.h"
#include "policies/trace/trace_edit.h"

namespace memwall {

enum class FsdpHookKind : std::uint8_t { pre_forward, post_forward, pre_backward, post_backward, end_backward };

struct FsdpHook {
  FsdpHookKind kind = FsdpHookKind::pre_forward;
  std::size_t unit = 0;  // end_backward: the root
  std::size_t pass = 0;  // of ZeroAnalysis::passes
  bool rerun = false;    // pre_forward, post_forward: within backward
  InsertionPoint point;
  std::set<std::uint16_t> streams{};  // of the call's ops that use what is sharded
  bool by_root = false;               // post_backward: the root's final callback runs it
};

// In the order in which the host comes to them; around a unit's hooks those of the units around it. Units without
// parameters have none, the root always has.
std::vector<FsdpHook> fsdp_hooks(const Trace& trace, const ZeroAnalysis& analysis, const FsdpUnits& units,
                                 const FsdpSettings& settings);

}  // namespace memwall
