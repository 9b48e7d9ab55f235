// When stage 3 brings which parameters together: what DeepSpeed's coordinator decides at the hooks of every module, in
// steps whose module order has been recorded before (the second micro-batch of a training and all that follow).
//
// Which modules are called, and when: deepspeed_module_calls.h. The beginning's
// hooks fetch what it needs and fetch ahead what the calls behind it need; the end's release. Source:
// deepspeedai/DeepSpeed, deepspeed/runtime/zero/partitioned_param_coordinator.py (fetch_sub_module, release_sub_module,
// __params_to_release) and parameter_offload.py (mark_persistent_parameters).
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "policies/sharding/deepspeed_settings.h"
#include "policies/sharding/zero_analysis.h"
#include "policies/trace/dataflow.h"
#include "sim/trace/trace.h"

namespace memwall {

struct ModuleCall {
  Phase phase = Phase::unknown;
  std::size_t pass = 0;               // micro-batch: a forward and its backward
  bool is_leaf = false;               // fine-grained: deepspeed_leaf_modules.h
  OpId first = 0, last = 0;           // ops, of modules below included, that it begins before and ends behind
  std::vector<OpId> ops;              // of its own, that use parameters; ascending
  std::vector<StorageId> parameters;  // needed whole: of the module, and what else its own ops use; ascending
  // Decided:
  std::vector<StorageId> fetched;     // not there: gathered at the call
  std::vector<StorageId> awaited;     // under way: waited for at the call
  std::vector<StorageId> prefetched;  // gathered ahead, for later calls
  std::vector<StorageId> released;    // behind the call
  // Partitions on NVMe: read at the call, while the host waits; read ahead, once it has gathered ahead.
  std::vector<StorageId> read, read_ahead;
};

// The beginning of a call, or its end.
struct ModuleHook {
  std::size_t call = 0;
  bool behind = false;
};

struct FetchPlan {
  std::vector<ModuleCall> calls;   // as they begin
  std::vector<ModuleHook> hooks;   // in host order
  std::set<StorageId> persistent;  // stay gathered
  std::set<StorageId> on_nvme;     // whose partitions live there
  std::map<StorageId, std::int64_t> elements;
  std::map<StorageId, Bytes> element;  // bytes of one
  std::int64_t most_live = 0;          // elements of gathered parameters at once
  std::size_t leaf_modules = 0;
  std::int64_t finest_granularity = 0;  // of a module that could be a leaf; 0 = there is none, or none is asked for
};

// Throws UsageError where the pinned buffers cannot hold what is read from NVMe.
FetchPlan plan_fetches(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis,
                       const DeepSpeedSettings& settings);

}  // namespace memwall
