// Which storage each input and output of a profile's operators is, from the profile alone.
//
// torch.profiler lists of every operator the shapes and types of its inputs (record_shapes), not which tensors they
// are, and nothing of its results; beside them every allocation and free (profile_memory). A walk in host order
// concludes the rest:
//
// - What is allocated while an operator is the innermost one open is made by it; it is a result of that operator and of
//   those around it as long as it is alive when they end, and a workspace where it is freed in the operator itself.
// - An input of an operator inside another one is an input of that one, or was made in it.
// - A backward function gets gradients that backward functions before it made and nobody took yet. What it needs of the
//   forward pass are inputs and results of the operator with its sequence number; what is freed when it ends is
//   preferred.
// - An outermost operator of the forward pass gets the newest tensor of that shape and type that nobody has read. One
//   that was read is taken only if it can have a second reader: if the backward pass adds two gradients for it.
// - What an operator's schema calls weight, bias or running statistics is older than the window: one per module and
//   operator, the same in every step. Other inputs that nobody made are older, too.
// - Views (t, view, expand, ...) make no storage. Operators whose name ends in '_' write their first input.
// - Optimizers on lists: optimizer_lists.h.
//
// Where one candidate is left, it is certain; where a rule chose among several, assumed; where none is left or a list
// is not listed, the input is left out. All three are counted, for operators that launched device work.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/import/inference/tensor_table.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

struct InferredTensor {
  TensorId tensor = kNoTensor;
  std::uint16_t argument = 0;
  WantedTensor as;  // as the operator sees it
};

struct InferredCall {
  std::vector<InferredTensor> inputs, outputs;
  int out_argument = -1;  // the argument that a variant "out" writes
  bool of_lists = false;  // an optimizer's operator on lists
};

struct InferenceCounts {
  std::uint64_t certain = 0, assumed = 0, left_out = 0;  // inputs of operators that launched device work
  double certain_bytes = 0, assumed_bytes = 0, left_out_bytes = 0;
  std::uint64_t lists = 0;         // lists of tensors of which the file does not say what is in them
  std::uint64_t beyond_total = 0;  // inputs left out as all older storages must fit in what was allocated at the start
};

struct TensorInference {
  TensorTable table;
  std::vector<InferredCall> calls;        // by operator of the capture
  std::vector<bool> whole;                // by operator: each of its inputs of 1 KiB and more was found
  std::vector<std::uint32_t> parameters;  // storages (of the table) for which a gradient was accumulated
  InferenceCounts counts;
};

// REQUIRES: `imported` is what import_timed_capture gave of `capture`.
TensorInference infer_tensors(const ImportedTrace& imported, const TimedCapture& capture);

}  // namespace memwall
