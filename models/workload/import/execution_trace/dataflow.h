// Which storages every device op reads and writes.
//
// An ExecutionTrace says what an *operator* receives and returns; a capture says which kernels it
// launched. An operator of one kernel is exact: the kernel reads the inputs and writes the outputs
// that are new, and the inputs that the schema marks as written. A view shares its storage and
// runs no kernel, so it produces nothing. Where one operator runs several kernels, this is assumed:
//
// - the kernels between the allocation of one output and that of the next make the former (a
//   convolution's backward pass allocates and computes the gradient of its input, then that of its
//   weight); outputs allocated together are made by the same kernels;
// - of such a run of kernels, each reads the operator's inputs. Those before the last write the
//   workspaces alive then, which later kernels of the operator read; without a workspace they write
//   a version of the output, and the next kernel reads it. The last writes the output. So no kernel
//   is without effect, and who repeats the output repeats the run;
// - an operator on lists of tensors (_foreach_, _fused_) works through the lists in order: of n
//   kernels the i-th takes the i-th part of every list.
//
// What an operator inside computed, its caller does not write again. Fills, copies and `out`
// arguments that cover a whole storage do not read it. A read of a storage that the capture has
// freed, or that nothing has written, is left out and counted.
#pragma once

#include <cstddef>

#include "models/workload/import/execution_trace/storage_join.h"

namespace memwall {

struct DataflowCounts {
  std::size_t device_ops = 0;     // kernels, memsets, copies, collectives launched in the window
  std::size_t placed = 0;         // launched before it: of no operator
  std::size_t with_operator = 0;  // of an operator of the ExecutionTrace that has device tensors
  std::size_t with_uses = 0;
  std::size_t reads = 0, writes = 0;
  std::size_t left_out_dead = 0;  // uses of a storage that is not alive then
  std::size_t left_out_unwritten = 0;
};

// Fills Trace::uses. By op, `node_of_op` becomes the node it was run for, or kNoIndex.
// Throws InputError if one kernel uses more than kMostUsesOfAnOp storages.
DataflowCounts join_dataflow(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
                             const OperatorMatch& match, const StorageJoin& storages,
                             std::vector<std::uint32_t>& node_of_op);

}  // namespace memwall
