// Joins a PyTorch ExecutionTrace to the timed capture of the same run: dataflow, kinds, shapes.
//
// The capture knows when memory was allocated and freed and what ran; the ExecutionTrace knows
// which operator used which tensors. Operators are matched by host order and name
// (operator_match.h), storages by births and allocations (storage_join.h), device ops get their
// uses from their operators (dataflow.h), storages their kinds and labels (storage_kinds.h), and
// kernels FLOPs, bytes and data type from shapes (operator_cost.h). An operator of several kernels
// shares its FLOPs and bytes among them by duration.
//
// The ops, their order and their costs stay as imported, so the join never changes a replay. Where the capture has no
// memory events, lifetimes are derived as an ExecutionTrace alone has them (derived_dataflow.h): allocations and frees
// that cost nothing stand between the ops.
#pragma once

#include "models/workload/import/execution_trace/dataflow.h"
#include "models/workload/import/execution_trace/derived_lifetimes.h"
#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/execution_trace/operator_match.h"
#include "models/workload/import/execution_trace/storage_join.h"
#include "models/workload/import/timed/decision.h"
#include "models/workload/import/timed/timed_import.h"
#include "models/workload/saved_tensors.h"

namespace memwall {

struct JoinReport {
  OperatorMatch operators;
  StorageJoin storages;
  DataflowCounts dataflow;
  SavedTensors saved;
  std::size_t captured_operators = 0;
  double claimed_share = 1;  // of the bytes of storages born in the window; 1 where none is
  double covered_share = 0;  // of the device ops launched in the window: for an operator of the ExecutionTrace
  double flops = 0;          // of all kernels
  DerivedLifetimes lives;    // where the capture has no memory events
};

// Below this share of operators with a partner, or of device ops covered, the two are not of one run
// or one step.
inline constexpr double kLeastJoined = 0.9;

// Adds uses, preexisting storages, kinds, labels, FLOPs, bytes and data types to the trace, lowers
// untracked_bytes accordingly, sets Knowledge::dataflow and shapes, and adds lines to the notes. The
// trace is sound afterwards. Where the ExecutionTrace covers less than nine tenths of the device ops
// (one of many recorded iterations), Knowledge stays as it was and a note says so.
// Throws InputError with the counts if less than nine tenths of its operators have a partner; the
// trace is then unchanged. REQUIRES: without Knowledge::allocations the trace has neither alloc nor free ops.
JoinReport join_execution_trace(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution);

// What the join concluded, each with its coverage, for `memwall import --explain`.
std::vector<Decision> join_decisions(const JoinReport& report);

}  // namespace memwall
