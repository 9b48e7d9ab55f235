// A run as the profile that torch.profiler would have written: Kineto's Chrome trace (JSON), for Holistic Trace
// Analysis, PyTorch's TensorBoard plugin and everything else that reads profiles, `memwall import` too.
//
// Format: libkineto/src/output_json.cpp and torch/csrc/profiler. Calls of the CUDA runtime by the kinds of ops, work on
// streams with the correlation of its call, arrows ac2g, operators and modules as kineto_ranges.h has them, one
// ProfilerStep#N per step, [memory] events of the device, rows of cuda_sync that say which event a stream waits for.
// Times are nanoseconds from the beginning of the run, cut, so that what touched touches still. Transfers between host
// and drives are of category "storage_io", which readers of profiles leave out; a pager's moves are not written. The
// address of an allocation numbers its storage.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "traces/run/run.h"

namespace memwall {

// One rank of the run: an index into Trace::rank_table, 0 where that is empty; a profile holds one. Same run, same
// bytes. The caller looks after the stream's state.
void export_kineto(const Run& run, std::uint16_t rank, std::ostream& out);

}  // namespace memwall
