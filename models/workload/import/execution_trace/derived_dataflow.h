// Dataflow and lifetimes of a step whose operators' tensors are known, but not when memory was allocated or freed.
//
// Births of storages, uses, kinds and labels follow the rules of the join with a capture (storage_join.h,
// dataflow.h, storage_kinds.h); lifetimes those of derived_lifetimes.h. Two things are known of what outlives its last
// use: what AccumulateGrad took is a gradient and lives until the next Optimizer.zero_grad, or the end; and what a
// collective uses lives until somebody has waited for it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "models/workload/import/execution_trace/dataflow.h"
#include "models/workload/import/execution_trace/derived_lifetimes.h"
#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/execution_trace/operator_match.h"
#include "models/workload/import/timed/decision.h"
#include "models/workload/import/timed/timed_import.h"
#include "models/workload/saved_tensors.h"

namespace memwall {

struct DerivedDataflow {
  StorageJoin storages;
  DataflowCounts flow;
  DerivedLifetimes lives;
  SavedTensors saved;
  double flops = 0;
  std::uint64_t convolutions = 0;  // kernels of single precision, all of which are priced in TF32 or none
  bool tf32 = false;
  bool tf32_stated = false;  // the file says which
};

// Lifetimes alone, of a trace whose uses are known. `waited`: a collective, and the op behind which it was waited for.
// What stands beside the trace's ops in `imported` follows. REQUIRES: imported.trace has uses and no alloc ops.
DerivedLifetimes derive_lifetimes(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
                                  const OperatorMatch& match, const StorageJoin& storages,
                                  const std::vector<std::pair<OpId, OpId>>& waited = {});

struct DataflowSettings {
  bool set_costs = true;                      // FLOPs, bytes, type and shape of kernels that have none
  std::vector<std::pair<OpId, OpId>> waited;  // a collective, and the op behind which it was waited for
};

// REQUIRES: imported.trace has neither uses nor alloc ops; imported.operator_of_op has an entry per op; operators of
// `capture` and nodes of `execution` have equal indices. Sets Knowledge::dataflow, allocations, and shapes with
// set_costs.
DerivedDataflow add_dataflow(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
                             const DataflowSettings& settings);

// What derived lifetimes are worth, for a note or a decision.
std::string lifetimes_sentence(const DerivedLifetimes& lives);

// What was concluded of what autograd keeps.
Decision saved_decision(const SavedTensors& saved);

// What was concluded, one decision each.
std::vector<Decision> decisions_of(const DerivedDataflow& derived);

}  // namespace memwall
