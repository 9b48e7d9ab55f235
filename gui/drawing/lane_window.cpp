#include "gui/drawing/lane_window.h"

#include <string>

namespace memwall::gui {

CategoryColors category_colors(const Theme& theme) {
  CategoryColors colors;
  for (int w = 0; w < kSpanCategories; ++w)
    colors[static_cast<std::size_t>(w)] = color_of(theme, to_string(static_cast<SpanCategory>(w)));
  colors[kDimmedCategory] = theme.dimmed;
  return colors;
}

TimeRange visible_range(const RowPlace& place) {
  const TimeRange visible = place.state.viewport.visible();
  return {visible.begin - place.shift(), visible.end - place.shift()};
}

LaneWindow load_lane_window(const RowPlace& place) {
  const SpanCache& spans = *place.run().spans;
  const std::uint32_t lane = place.row.index;
  const LaneBlockSearch& search = spans.blocks_of(lane);
  LaneWindow window;
  window.range = visible_range(place);
  window.part = search.within(window.range);
  if (window.part.last - window.part.first > kMostBlocksDrawn) return window;
  if (search.spans_within(window.part, window.range) > kMostSpansDrawn) return window;
  for (std::size_t i = window.part.first; i < window.part.last; ++i) {
    const std::uint32_t number = spans.number_of(lane, search.blocks()[i]);
    if (auto block = spans.find(number))
      window.blocks.push_back(std::move(block));
    else
      window.missing.push_back(number);
  }
  window.exact = window.missing.empty();
  if (!window.exact) window.blocks.clear();
  return window;
}

SpanCategory category_of(const LoadedBlock& block, std::uint16_t offset, RunLaneKind kind) {
  if (kind == RunLaneKind::pager) return SpanCategory::copy;
  const SpanBlock& spans = block.spans;
  if (kind != RunLaneKind::thread) return work_category(spans.kind[offset], spans.phase[offset]);
  // A block does not keep what a call waits for, only that it did.
  const bool waited = spans.return_reason[offset] == WaitReason::synchronize;
  return call_category(spans.kind[offset], waited ? WaitFor::device : WaitFor::nothing);
}

std::uint8_t level_for(const RunLane& lane, double picoseconds_per_pixel) {
  std::uint8_t level = 0;
  while (level + 1 < lane.levels &&
         static_cast<double>(std::uint64_t{1} << (lane.base_log2 + level + 1)) <= picoseconds_per_pixel)
    ++level;
  return level;
}

}  // namespace memwall::gui
