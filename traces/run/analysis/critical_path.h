// The critical path: what the run was waiting for at every instant, found by
// walking back from the last end through the causes that the engine recorded.
//
// The segments are contiguous and cover [0, end of the run] exactly. A segment
// belongs to one op and has one class. Launch latency, stream gaps, latency of
// events and return delays of blocking calls are host time: they vanish where the
// host has nothing to do with the start of a kernel (CUDA graphs, bigger kernels).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

// What an instant of a run is spent on.
enum class TimeClass : std::uint8_t {
  compute,     // kernels and memsets
  recompute,   // the same, of Phase::recompute
  copy,        // transfers between tiers
  collective,  // communication between ranks
  storage,     // reads and writes of storage tiers
  allocator,   // alloc and free calls, and waiting until an allocation fits
  fault,       // a kernel waits for data that a pager brings in
  host,        // calls, host gaps, host work, latencies of launches
  idle         // nothing pending
};
inline constexpr int kTimeClasses = 9;
std::string_view to_string(TimeClass c);

// Where on the way of an op a segment lies.
enum class PathPart : std::uint8_t {
  work,     // on the device
  call,     // the host call itself, or host work
  gap,      // host time before the call
  latency,  // between a cause and its effect: launch, stream gap, event, return of a blocking call
  wait      // for memory or data that a pager moves, or for the peers of a collective
};
std::string_view to_string(PathPart part);

struct PathSegment {
  Time begin{}, end{};  // begin < end
  OpId op = kNoOp;      // kNoOp: before the first cause that is known
  TimeClass time_class = TimeClass::idle;
  PathPart part = PathPart::work;
};

// Ascending in time. Empty if the run has no duration. Of a trace of several ranks it goes on, before a collective that
// met others, with the rank that came last.
std::vector<PathSegment> critical_path(const Run& run);

// The same of one rank: from the end of its work back to 0, never leaving it. While its collective has begun and others
// have not, it waits for a collective (PathPart::wait). REQUIRES: rank < rank_count(run.trace).
std::vector<PathSegment> critical_path_of_rank(const Run& run, std::uint16_t rank);

// Of every rank what critical_path_of_rank gives.
std::vector<std::vector<PathSegment>> critical_paths_of_ranks(const Run& run);

// The class of what an op does on the device (compute for kernels, copy for copies, ...).
TimeClass device_class(const Op& op);

}  // namespace memwall
