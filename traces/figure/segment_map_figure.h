// The segments of an allocator at an instant: what lies where in them, and which holes are between.
#pragma once

#include <string>
#include <vector>

#include "traces/figure/figure.h"
#include "traces/figure/segment_map_layout.h"

namespace memwall {

struct SegmentMapChart {
  std::string title, subtitle;
  std::vector<std::string> kinds;    // "activation": also chooses the colour
  std::vector<std::string> sources;  // "model.py:253 forward"
  std::vector<MapGroup> groups;      // in the order of drawing
  std::size_t most_holes = 5;        // how many of the largest free blocks are marked and listed
};

// Blocks by kind, freed ones that a stream may still use, free space and unmapped addresses each look different.
// What is too small to be drawn is counted in the heading of its group. REQUIRES: indices within their tables.
Figure draw_segment_map(const SegmentMapChart& chart);

}  // namespace memwall
