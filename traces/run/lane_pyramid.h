// Level of detail: how busy each lane is, in buckets of doubling width, so that a viewer
// draws millions of spans without touching them.
//
// A lane is a host thread (busy: calls, less waiting) or a stream (busy: work). Level 0 of a lane
// has the narrowest buckets, 2^base_log2 picoseconds wide; each further level doubles the width
// until one bucket covers the run. Empty buckets are left out. The busy times of a level add up to
// the busy time of the lane, at every level.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

enum class LaneKind : std::uint8_t { thread, stream };

struct Lane {
  LaneKind kind = LaneKind::thread;
  std::uint16_t index = 0;     // into Trace::threads or Trace::streams
  std::uint8_t base_log2 = 0;  // width of level 0's buckets
  std::uint8_t levels = 0;
};

struct LaneBucket {
  std::uint32_t lane = 0;  // index into LanePyramid::lanes
  std::uint8_t level = 0;
  std::uint32_t bucket = 0;  // covers [bucket, bucket + 1) x 2^(base_log2 + level) picoseconds
  Duration busy{};
  std::uint64_t begins = 0;  // spans that begin in it
};

struct LanePyramid {
  std::vector<Lane> lanes;          // threads, then streams
  std::vector<LaneBucket> buckets;  // by lane, level, bucket
};

LanePyramid build_pyramid(const Run& run);

}  // namespace memwall
