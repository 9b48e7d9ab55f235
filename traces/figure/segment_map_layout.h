// Where the segments of a map stand: rows of one scale, a long segment over several of them, short ones side by side.
// The layout of segment_map_figure.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/memory/allocator.h"
#include "sim/units.h"

namespace memwall {

struct MapBlock {
  enum class Use : std::uint8_t { in_use, pending, free, unmapped };
  Bytes size = 0;       // > 0
  Bytes requested = 0;  // of a block in use
  Use use = Use::free;
  std::uint16_t kind = 0;    // of a block in use: index into SegmentMapChart::kinds
  std::uint32_t source = 0;  // likewise, into sources
};

struct MapSegment {
  Address address = 0;
  bool expandable = false;
  std::vector<MapBlock> blocks;  // ascending, without gaps: their sizes add up to the segment
};

// Segments that share their free blocks.
struct MapGroup {
  std::string name;  // "large pool, stream 0"
  std::vector<MapSegment> segments;
};

// A part of a row: blocks [first, last) of a segment, or a part of the only one.
struct MapPiece {
  std::uint32_t group = 0, segment = 0;
  std::uint32_t first = 0, last = 0;
  std::uint32_t row = 0;  // of the group
  double x = 0, width = 0;
};

// The part of a segment that stands in one row.
struct MapSlice {
  std::uint32_t group = 0, segment = 0, row = 0;
  double x = 0, width = 0;
  bool begins = true, ends = true;  // false: it goes on in the row above, below
};

struct SegmentMapLayout {
  double bytes_per_point = 1;
  std::vector<std::uint32_t> rows;                    // of each group
  std::vector<MapSlice> slices;                       // by group and row
  std::vector<MapPiece> pieces;                       // likewise; together they cover the slices
  std::vector<std::vector<std::uint32_t>> too_small;  // of each group: segments that are not drawn
  bool cut_unmapped = false;                          // an unmapped range is drawn shorter than it is
};

struct SegmentMapLimits {
  double width = 928;               // of a row, points
  std::size_t most_rows = 56;       // of all groups together, about
  std::size_t most_pieces = 5'000;  // beyond it, blocks are merged more and more
};

// Within a group the largest segment comes first, of equals the one with the lowest address. Blocks too narrow to be
// seen are merged with their neighbours; unmapped ranges are cut short; all else is to scale.
SegmentMapLayout lay_out_segments(const std::vector<MapGroup>& groups, const SegmentMapLimits& limits = {});

}  // namespace memwall
