// What lets a viewer find its way in a run without reading it: lanes, where in the file the spans
// of a lane stand, and how each lane looks zoomed out.
//
// Written into the run file beside the run (FORMAT.md); built from the run where a file has none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

inline constexpr std::uint32_t kSpanBlock = 16384;  // ops that are read at a time
inline constexpr std::uint8_t kNoLane = 255;

enum class RunLaneKind : std::uint8_t { thread, stream, engine, pager };
std::string_view to_string(RunLaneKind kind);  // "host thread", "stream", "copy engine", "pager"

// What a span is to the eye: the category that chooses its colour, the same in all views and figures.
enum class SpanCategory : std::uint8_t {
  compute,  // a kernel of no known phase
  forward,
  recompute,
  backward,
  optimizer,
  copy,
  collective,
  storage,
  host,       // a call, or host work
  allocator,  // alloc and free calls
  waiting,    // a call that stands and waits
};
inline constexpr int kSpanCategories = 11;
std::string_view to_string(SpanCategory category);
// Of an op's work on the device, and of its call.
SpanCategory work_category(OpKind kind, Phase phase);
SpanCategory call_category(OpKind kind, WaitFor wait_for);

// A lane: a host thread (spans: calls), a stream (work), a copy engine (copies of all streams that it serves), or moves
// of a pager between two tiers.
struct RunLane {
  RunLaneKind kind = RunLaneKind::thread;
  std::uint16_t index = 0;        // thread: into Trace::threads; stream: into Trace::streams; else counted from 0
  std::uint16_t rank = 0;         // whose: index into Trace::rank_table
  std::uint16_t from = 0, to = 0;  // pager: indices into Machine::tiers
  std::string name;               // as on the screen: "stream 7 (compute), rank 2"
  std::uint64_t spans = 0;
  // Level 0 has buckets of 2^base_log2 picoseconds, each further level twice that, the last has one bucket. No levels:
  // no spans.
  std::uint8_t base_log2 = 0, levels = 0;
  std::uint8_t engine = 0;   // engine: which, as Route::engine
  std::uint16_t device = 0;  // engine: of which device
};

// A bucket of a lane at one level of detail, if it is busy or a span begins in it: [bucket, bucket + 1) x 2^(base_log2
// + level) picoseconds.
struct LaneCell {
  std::uint32_t bucket = 0;
  Duration busy{};           // at most the width of the bucket: spans that overlap count once
  std::uint64_t begins = 0;  // spans that begin in it
  SpanCategory category =
      SpanCategory::compute;  // of what takes most of the busy time; of the first span if all are instants
  // Streams: what the time that is not busy waited for: `stall` most of it within the bucket (a gap belongs to the span
  // that ends it, wherever that begins), `before` the gap that ends with the first span that begins here, which empty
  // buckets before this one belong to; `none` where no span begins. After the last span nothing is waited for.
  WaitReason stall = WaitReason::none, before = WaitReason::none;
};

// The spans of a lane among kSpanBlock ops (of a pager's lane: moves) in a row.
struct LaneBlock {
  std::uint32_t block = 0;  // ops [block x kSpanBlock, (block + 1) x kSpanBlock)
  Time begin{}, end{};      // earliest begin, latest end
  std::uint32_t spans = 0;
};

struct RunIndex {
  std::vector<RunLane> lanes;
  std::vector<std::vector<std::vector<LaneCell>>> cells;  // per lane, per level, ascending in bucket
  std::vector<std::vector<LaneBlock>> blocks;             // per lane
};

// Lanes in the order of the screen: threads, streams, copy engines, pager's moves by tiers. An engine whose
// lane would have a number of kNoLane or more has none.
// REQUIRES: as many records as ops.
RunIndex build_run_index(const Run& run);

}  // namespace memwall
