// What the user asked of `fsdp`, in PyTorch's own names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/policy/registry.h"

namespace memwall {

struct FsdpSettings {
  int version = 2;
  std::uint32_t ranks = 2;                    // of the job
  std::uint32_t replicas = 1;                 // groups of ranks that hold the same shards (HSDP); divides ranks
  std::vector<std::string> units;             // patterns of module paths; empty: the repeated blocks
  DataType param_dtype = DataType::unknown;   // of gathered parameters; unknown: as the step reads them
  DataType reduce_dtype = DataType::unknown;  // of reductions; unknown: of the parameters
  // Ranks over which parameters are sharded between forward and backward: 0 = none (they stay whole), `shards()` = as
  // at rest. `root` likewise.
  std::uint32_t forward_shards = 0, root_forward_shards = 0;
  std::vector<std::string> kept;          // patterns of units that stay whole after forward
  bool reduces_each_pass = true;          // false: set_requires_gradient_sync(False) but for the last pass of a step
  bool all_reduces_each_pass = true;      // false: set_requires_all_reduce(False) but for the last pass
  bool gives_back_between_passes = true;  // false: set_reshard_after_backward(False) but for the last pass
  int forward_prefetch = 0;               // units gathered ahead explicitly
  int backward_prefetch = 1;
  // Version 1:
  bool prefetches_after_backward = false;  // BACKWARD_POST: behind the present unit's backward
  bool frees_without_reduction = true;     // a pass that does not reduce gives parameters back, too
  bool limits_gathers = true;
  Bytes alignment = 1;             // of parameters in the flat one
  bool wraps = false;              // what the constructor leaves in the allocator's cache is there
  bool broadcasts_states = false;  // sync_module_states
  bool offloads = false;  // shards, their gradients and the optimizer are the host's (CPUOffloadPolicy, CPUOffload)
  bool pins_memory = true;
  bool clips = false;  // the gradients' norm, where the step itself has none
  Duration hook{};     // host time of one hook of a unit, besides the calls of the driver

  std::uint32_t shards() const { return ranks / replicas; }
};

std::vector<ParameterInfo> fsdp_parameters();
// Throws UsageError for what PyTorch refuses.
FsdpSettings fsdp_settings(const PolicyArguments& arguments);

}  // namespace memwall
