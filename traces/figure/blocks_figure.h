// The active-memory timeline: every large allocation a band over its life, stacked; the small ones as one band on top.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/figure/block_stack.h"
#include "traces/figure/memory_figure.h"

namespace memwall {

struct BlocksChart {
  std::string title, subtitle;
  InstantUnit unit = InstantUnit::events;
  Time begin{}, end{};
  std::vector<std::string> kinds;        // "activation": also chooses the colour
  std::vector<std::string> sources;      // "model.py:253 forward"
  std::vector<std::string> phase_names;  // "forward"
  std::vector<BlockLife> blocks;
  std::vector<MemoryOutline> outlines;
  Bytes capacity = 0;               // 0 = unknown
  std::vector<InstantMark> marks;   // ascending
  std::vector<InstantSpan> phases;  // ascending, apart
};

// Hovering over a band shows its size, source, kind, phase and life. How many blocks share the band on top, and how
// many are too short to be seen, is said in the legend. The drawing stays small whatever the number of blocks.
// REQUIRES: begin <= end; indices within their tables.
Figure draw_blocks(const BlocksChart& chart);

}  // namespace memwall
