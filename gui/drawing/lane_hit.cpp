// What lies under a point of a lane: the span there, else the nearest within a few pixels; zoomed out a
// sentence on what happens within the pixel.
#include <fmt/format.h>

#include <algorithm>

#include "gui/drawing/lane_window.h"
#include "gui/drawing/row_drawing.h"
#include "gui/drawing/span_text.h"

namespace memwall::gui {
namespace {

constexpr double kReach = 3;  // pixels to either side

struct FoundSpan {
  const LoadedBlock* block = nullptr;
  std::uint16_t offset = 0;
  Duration distance = kNever;
};

// Of spans that hold the instant the one that began last, which is on top.
FoundSpan nearest(const LaneWindow& window, std::uint32_t lane, RunLaneKind kind, Time time, Duration reach) {
  FoundSpan found;
  for (const auto& block : window.blocks) {
    const LaneSlice slice = block->slice(lane, kind);
    const auto [first, last] = slice.within({time - reach, time + reach});
    for (std::size_t i = first; i < last; ++i) {
      const Duration distance = std::max({Duration{}, slice.begin(i) - time, time - slice.end(i)});
      if (distance <= reach && distance <= found.distance) found = {block.get(), slice.offset(i), distance};
    }
  }
  return found;
}

std::string text_zoomed_out(const RowPlace& place, Time time) {
  const RunLane& lane = place.run().outline().lanes[place.row.index];
  const double pixel = place.state.viewport.picoseconds_per_pixel();
  const std::uint8_t level = level_for(lane, pixel);
  std::uint64_t begins = 0;
  Duration busy{}, length{}, most{};
  SpanCategory category = SpanCategory::compute;
  for_each_cell(place.run(), place.row.index, level, {time, time + Duration(static_cast<std::int64_t>(pixel))},
                [&](const LaneCell& cell, Time begin, Time end) {
                  begins += cell.begins;
                  busy += cell.busy;
                  length += end - begin;
                  if (cell.busy >= most) category = cell.category;
                  most = std::max(most, cell.busy);
                });
  if (length.count() == 0) return "";
  return fmt::format("{} {} here, {:.0f} % busy, mostly {}\nzoom in for single ones", begins,
                     begins == 1 ? "begins" : "begin", 100 * to_seconds(busy) / to_seconds(length),
                     to_string(category));
}

}  // namespace

void hit_lane_row(const RowPlace& place, double, double, Hit& hit) {
  const LaneWindow window = load_lane_window(place);
  if (!window.exact) {
    hit.text = text_zoomed_out(place, hit.time);
    return;
  }
  const RunLaneKind kind = place.run().outline().lanes[place.row.index].kind;
  const auto reach = Duration(static_cast<std::int64_t>(kReach * place.state.viewport.picoseconds_per_pixel()));
  const FoundSpan found = nearest(window, place.row.index, kind, hit.time, reach);
  if (!found.block) return;
  if (kind == RunLaneKind::pager) {
    const MoveRecord& move = found.block->moves[found.offset];
    hit.storage = StorageRef{place.row.run, move.storage};
    hit.text = move_text(place.run(), move);
    return;
  }
  hit.op = OpRef{place.row.run, found.block->spans.first + found.offset, kind == RunLaneKind::thread};
  hit.text = span_text(place.run(), *found.block, found.offset, kind);
}

}  // namespace memwall::gui
