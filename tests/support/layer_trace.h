// A generated trace of the plainest network: linear layers one behind the other, each with one 16-bit
// parameter, trained with Adam. Every parameter is read once in forward and once in backward, which is
// what the papers' volumes assume; a GPT's shared embedding is read more often.
//
// Each kernel takes one microsecond. Passes of one step accumulate gradients.
#pragma once

#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

struct LayerShape {
  std::vector<Bytes> parameter_bytes = {1024, 2048, 4096};
  int passes = 1;  // forward and backward before each update
  int steps = 1;
  bool modules = true;  // "layers.N"
  bool optimizer = true;
  bool captured_all_reduce = false;  // after backward, of all gradients, as plain data parallel training does
  // As DistributedDataParallel does: each gradient is copied into a bucket of its own, which is reduced in another
  // stream behind an event; after backward the sums are copied back.
  bool captured_buckets = false;
  // With captured_buckets, as its gradient_as_bucket_view: the bucket stays and is what the optimizer reads.
  bool bucket_views = false;
  // Input comes from a table of 8 KiB that this rank holds alone, with 16 KiB of states, by an all-to-all of
  // activations; backward reads both.
  bool exchanges = false;
  Bytes activation_bytes = 512;
};

// Passes check().
Trace layer_trace(const LayerShape& shape);

}  // namespace memwall
