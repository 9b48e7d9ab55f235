// Dataflow, kinds and labels of a timed capture without an ExecutionTrace, inferred from the profile alone.
//
// What tensor_inference.h concludes is put down as an ExecutionTrace would say it, and becomes uses, kinds and labels
// by the same rules as one (dataflow.h, storage_kinds.h). The ops, their order and their times stay as imported;
// kernels of an optimizer on lists get bytes where the file lists no sizes. Without memory events results are supposed
// by rules (supposed_allocations.h), and allocations and frees follow from uses (derived_lifetimes.h).
#pragma once

#include <string>
#include <vector>

#include "models/workload/import/execution_trace/dataflow.h"
#include "models/workload/import/execution_trace/derived_lifetimes.h"
#include "models/workload/import/inference/tensor_inference.h"
#include "models/workload/import/timed/decision.h"
#include "models/workload/import/timed/timed_import.h"
#include "models/workload/saved_tensors.h"

namespace memwall {

struct InferredDataflow {
  InferenceCounts inputs;
  DataflowCounts flow;
  SavedTensors saved;
  std::uint64_t supposed = 0;                  // results that rules tell, where the file has no memory events
  DerivedLifetimes lives;                      // there
  std::uint64_t whole = 0;                     // device ops of operators all of whose inputs were found
  std::uint64_t wrong_totals = 0, totals = 0;  // memory events after which live storages are not `Total Allocated`
  std::string missing;                         // why dataflow counts as unknown, as a sentence; "" if it is known
  double share() const {
    return flow.device_ops == 0 ? 0 : static_cast<double>(whole) / static_cast<double>(flow.device_ops);
  }
};

// Of the device ops; with less the inference counts as failed. As for a join with an ExecutionTrace (kLeastJoined):
// what is left out then is too little to change what a policy does.
inline constexpr double kLeastInferred = 0.9;

// More device work than in a few steps of a large model is not looked at: it takes about 4.6 kB of memory each, and the
// file is then read at a tenth of the speed (docs/kineto.md).
inline constexpr std::size_t kMostInferred = 100'000;

// Could infer_dataflow conclude anything: does the capture list shapes, and memory events with addresses and totals or
// none at all, of not more device work than that?
bool can_infer_dataflow(const TimedCapture& capture);

// Sets uses, kinds, labels and Knowledge::dataflow where enough inputs are found; otherwise the trace stays as it is.
// Adds a note either way: what policies rest on, or what is missing (why_no_dataflow finds it). Throws InputError if
// one kernel uses more than kMostUsesOfAnOp storages. REQUIRES: where can_infer_dataflow, `imported` is what
// import_timed_capture gave of `capture`; it has no uses.
InferredDataflow infer_dataflow(ImportedTrace& imported, const TimedCapture& capture);

// What was concluded, one decision each.
std::vector<Decision> inference_decisions(const InferredDataflow& inferred);

}  // namespace memwall
