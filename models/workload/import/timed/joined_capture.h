// A capture with its halves joined: which call launched which device work, in which order streams
// got it, which operator was open around each call, and what each call is for.
//
// Internal to the importers of timed captures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/workload/import/timed/captured_batches.h"
#include "models/workload/import/timed/timed_capture.h"
#include "sim/trace/op.h"
#include "sim/trace/trace.h"

namespace memwall {

enum class CallRole : std::uint8_t {
  plain,        // host time only; becomes part of the gap before the next op
  launch,       // puts one device op on a stream
  graph,        // puts several on a stream, as one entry
  synchronize,  // waits for a stream, an event or the device
  host_work     // host time worth an op of its own: cudaMalloc, cudaFree, ...
};

struct JoinedCall {
  CallRole role = CallRole::plain;
  WaitFor wait_for = WaitFor::nothing;
  std::uint16_t stream = 0;                        // that gets the work, or is awaited
  bool stream_is_stated = false;                   // wait_for == stream: by the file; else the thread's last
  std::uint32_t first_launched = 0, launched = 0;  // range of JoinedCapture::launched
  std::uint32_t operator_index = kNoIndex;         // innermost operator around it
  std::uint32_t awaited_record = kNoIndex;         // wait_for == event: the call that recorded the event
};

enum class Placement : std::uint8_t {
  launched,   // by a call in the file
  head,       // no call in the file, before the first recorded op of its stream: state of the stream
  unlaunched  // no call in the file, later: goes with its predecessor in the stream
};

struct JoinedDeviceOp {
  std::uint32_t call = kNoIndex;
  std::uint32_t position = 0;  // in JoinedStream::order
  std::uint16_t stream = 0;
  Placement placement = Placement::launched;
  bool collective = false;
  float waves = 0;
};

struct JoinedStream {
  std::int32_t device = 0;         // as the file numbers it
  std::int64_t id = 0;             // likewise
  std::uint16_t device_index = 0;  // among the devices that did something
  StreamRole role = StreamRole::compute;
  std::vector<std::uint32_t> order;  // device ops as submitted
};

struct JoinedCapture {
  const TimedCapture* capture = nullptr;   // not owned
  std::vector<JoinedCall> calls;           // as TimedCapture::calls
  std::vector<JoinedDeviceOp> device_ops;  // as TimedCapture::device_ops
  std::vector<JoinedStream> streams;
  std::vector<std::uint32_t> launched;            // device ops, grouped by call
  std::vector<CapturedBatch> batches;             // ascending by device op
  std::vector<std::uint8_t> thread_kept;          // per thread
  std::vector<std::uint32_t> operator_of_memory;  // per memory event: innermost operator
  std::unordered_map<std::int64_t, std::uint32_t> call_of_correlation;
  bool rocm = false;  // HIP calls: no limit of queued launches is known

  // The last device op of a stream submitted before call `call` in host order, as a position in
  // JoinedStream::order, or nothing.
  std::optional<std::uint32_t> last_before(std::uint16_t stream, std::uint32_t call) const;
  // The first one submitted after it.
  std::optional<std::uint32_t> first_after(std::uint16_t stream, std::uint32_t call) const;
  // The position in a stream's order of the first op submitted by `call` or a later one.
  std::size_t first_from(std::uint16_t stream, std::uint32_t call) const;
  // The stream of that number, or -1. `device` < 0: any.
  int stream_index(std::int32_t device, std::int64_t id) const;
  // The device op before this one in its stream, or kNoIndex.
  std::uint32_t predecessor(std::uint32_t device_op) const;
};

// REQUIRES: `capture` outlives the result. Throws InputError on more than 4,096 streams.
JoinedCapture join_capture(const TimedCapture& capture);

}  // namespace memwall
