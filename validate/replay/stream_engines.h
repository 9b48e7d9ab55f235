// What executes each stream of a schedule on a real GPU: the device, or a thread of the host that reads and
// writes a file. A stream is one or the other.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

enum class StreamEngine : std::uint8_t {
  device,  // kernels, copies and memsets: a CUDA stream
  storage  // storage ops: a queue with a thread of its own
};

// One per stream: by its ops, and by its role where it has none. Throws UsageError naming the stream and two of
// its ops where it holds storage ops and others.
std::vector<StreamEngine> stream_engines(const Trace& schedule);

}  // namespace memwall
