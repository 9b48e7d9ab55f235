// A step whose memory is free in pieces: for tests of what does not fit although its bytes are there.
#pragma once

#include "sim/trace/trace_builder.h"

namespace memwall {

// 1 GiB taken and given back, half of it taken again, then a request. On a device of 2 GiB under the caching allocator
// 1.5 GiB are free by then, in two pieces: 1 GiB that was never reserved, and the other half.
inline Trace pieces_trace(Bytes request) {
  TraceBuilder b;
  b.trace().name = "pieces";
  b.trace().knowledge = {true, true, true, false, false};
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  b.append(Op{});
  const StorageId whole = b.add_storage(GiB(1), StorageKind::activation, "hbm", "whole");
  const StorageId half = b.add_storage(MiB(512), StorageKind::activation, "hbm", "half");
  const StorageId last = b.add_storage(request, StorageKind::activation, "hbm", "last");
  b.alloc(whole, 0);
  b.free(whole, 0);
  b.alloc(half, 0);
  b.alloc(last, 0);
  b.trace().steps = {{"step", 0, static_cast<OpId>(b.trace().ops.size())}};
  return std::move(b).finish();
}

}  // namespace memwall
