#include "gui/drawing/occupancy_stack.h"

#include <algorithm>
#include <cmath>

#include "gui/drawing/lane_window.h"

namespace memwall::gui {

std::size_t OccupancyPixels::at(double x) const {
  const double share = (x - left) / width;
  return std::min(count - 1, static_cast<std::size_t>(std::max(0.0, share * static_cast<double>(count))));
}

Time OccupancyPixels::begin_of(std::size_t pixel) const {
  const double share = static_cast<double>(pixel) / static_cast<double>(count);
  return range.begin + Duration(static_cast<std::int64_t>(share * static_cast<double>(range.length().count())));
}

std::optional<OccupancyPixels> occupancy_pixels(const RowPlace& place) {
  const TimeRange visible = visible_range(place), whole = place.run().whole();
  if (!visible.overlaps(whole.begin, whole.end)) return std::nullopt;
  OccupancyPixels pixels;
  pixels.range = {std::max(visible.begin, whole.begin), std::min(visible.end, whole.end)};
  pixels.left = std::max(place.left, place.x(pixels.range.begin));
  pixels.width = std::min(place.left + place.width, place.x(pixels.range.end)) - pixels.left;
  if (!(pixels.width > 0)) return std::nullopt;
  pixels.count = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(pixels.width)));
  return pixels;
}

OccupancyCurves occupancy_curves(const RowPlace& place, const OccupancyPixels& pixels) {
  OccupancyCurves curves;
  curves.allocated.assign(pixels.count, 0);
  curves.reserved.assign(pixels.count, 0);
  const auto points = place.run().spans->level_of_detail().memory(place.row.index, pixels.range, 2048);
  const auto after = [&](Time time) {
    return std::partition_point(points->begin(), points->end(), [&](const MemoryHigh& p) { return p.time < time; });
  };
  auto point = after(pixels.range.begin);
  // What holds when a pixel begins, and all that comes within it.
  for (std::size_t i = 0; i < pixels.count; ++i) {
    const auto take = [&](const MemoryHigh& p) {
      curves.allocated[i] = std::max(curves.allocated[i], p.allocated);
      curves.reserved[i] = std::max(curves.reserved[i], p.reserved);
    };
    if (point != points->begin()) take(*std::prev(point));
    const Time end = pixels.begin_of(i + 1);
    const bool last = i + 1 == pixels.count;
    for (; point != points->end() && (point->time < end || (last && point->time == end)); ++point) take(*point);
  }
  return curves;
}

}  // namespace memwall::gui
