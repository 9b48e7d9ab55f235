// What a row knows of its lane in the visible range: every span, or the level of detail.
// Internal to gui/drawing.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "gui/drawing/pixel_columns.h"
#include "gui/drawing/row_drawing.h"

namespace memwall::gui {

// Above either, a lane is drawn from its level of detail: so many spans do not fit on the screen, so many blocks are
// too much to read.
inline constexpr double kMostSpansDrawn = 50'000;
inline constexpr std::size_t kMostBlocksDrawn = 16;

// What is dimmed stands behind the categories of spans.
inline constexpr std::uint8_t kDimmedCategory = kSpanCategories;
using CategoryColors = std::array<Color, kSpanCategories + 1>;
CategoryColors category_colors(const Theme& theme);

struct LaneWindow {
  TimeRange range;  // visible, in times of the run
  LaneBlockSearch::Part part;
  std::vector<std::shared_ptr<const LoadedBlock>> blocks;  // all of `part`; empty unless `exact`
  std::vector<std::uint32_t> missing;                      // numbers of blocks that would make it exact
  bool exact = false;
};
// The visible range in times of the row's run.
TimeRange visible_range(const RowPlace& place);
LaneWindow load_lane_window(const RowPlace& place);

// The category of the span at `offset` of a block.
SpanCategory category_of(const LoadedBlock& block, std::uint16_t offset, RunLaneKind kind);

// The level whose buckets are as wide as a pixel or, the next best, narrower.
std::uint8_t level_for(const RunLane& lane, double picoseconds_per_pixel);

// Calls visit(cell, begin, end) for the cells of a lane that touch the range, at a level. Throws InputError.
template <class Visit>
void for_each_cell(const OpenRun& run, std::uint32_t lane, std::uint8_t level, TimeRange range, Visit&& visit) {
  const RunLane& info = run.outline().lanes[lane];
  if (info.levels == 0) return;
  const int shift = info.base_log2 + level;
  const auto bucket = [&](Time time) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count())) >> shift;
  };
  const std::uint64_t first = bucket(range.begin), last = bucket(range.end) + 1;
  for (const LevelOfDetail::Cells& cells : run.spans->level_of_detail().cells(lane, level, first, last)) {
    for (const LaneCell& cell : *cells) {
      if (cell.bucket < first || cell.bucket >= last) continue;
      const auto begin = static_cast<std::int64_t>(std::uint64_t{cell.bucket} << shift);
      visit(cell, Time(begin), Time(begin + (std::int64_t{1} << shift)));
    }
  }
}

}  // namespace memwall::gui
