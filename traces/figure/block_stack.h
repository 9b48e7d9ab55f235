// Allocations stacked over time: each large one a band of its own that moves down when one below it is freed, the many
// small ones added up on top. The layout of blocks_figure.h, in bytes and columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/figure/instants.h"

namespace memwall {

// One allocation, from when it is made until it is freed.
struct BlockLife {
  Time begin{};              // before the axis: it lived already
  Time end{kNever};          // first instant without it; kNever: it outlives the axis
  Bytes bytes = 0;           // >= 0
  std::uint32_t source = 0;  // index into BlocksChart::sources
  std::uint16_t kind = 0;    // index into BlocksChart::kinds
  std::uint16_t phase = 0;   // index into BlocksChart::phase_names
};

// A band covers [floor, floor + bytes) of its block.
struct BlockBand {
  struct Step {
    std::size_t column = 0;  // from this column on
    Bytes floor = 0;
  };
  std::size_t block = 0;       // index into the blocks
  std::vector<Step> steps;     // ascending, the first where the band begins
  std::size_t end_column = 0;  // first column without it
};

struct BlockStack {
  // x from 0 to the width; where one column stands for several instants it shows the one with most bytes.
  std::vector<plot::DrawnInstant> columns;
  std::vector<Bytes> totals;  // per column: all blocks
  std::vector<Bytes> summed;  // per column: those without a band; they lie on top of all bands
  std::vector<BlockBand> bands;
  Bytes least = 0;  // from which size on a block has a band
  Bytes peak = 0;   // most bytes at once
  Time peak_at{};
  std::uint64_t summed_blocks = 0;  // without a band
  std::uint64_t unseen_blocks = 0;  // so short that no column shows them
};

struct BlockStackLimits {
  double width = 900;               // points from `begin` to `end`
  Bytes least = 0;                  // smaller blocks are summed at any rate
  std::size_t most_bands = 4'000;   // beyond either, columns become wider, then fewer blocks have bands
  std::size_t most_steps = 24'000;  // places of all bands together
};

// Most bytes at once within the axis.
Bytes most_at_once(const std::vector<BlockLife>& blocks, Time begin, Time end);

// Blocks are stacked in the order in which they begin; of those that begin together, the one that lives longest is
// lowest. REQUIRES: begin <= end.
BlockStack stack_blocks(const std::vector<BlockLife>& blocks, Time begin, Time end, const BlockStackLimits& limits);

}  // namespace memwall
