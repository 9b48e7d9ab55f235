#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/drawing/lane_window.h"
#include "gui/drawing/link_window.h"
#include "gui/model/peer_text.h"
#include "sim/error.h"
#include "traces/figure/axis.h"

namespace memwall::gui {
namespace {

// The point that holds at an instant.
const RateHigh* rate_at(const std::vector<RateHigh>& points, Time time) {
  const auto after =
      std::partition_point(points.begin(), points.end(), [&](const RateHigh& point) { return point.time <= time; });
  return after == points.begin() ? nullptr : &*std::prev(after);
}

double mean_within(const std::vector<RateHigh>& points, TimeRange range) {
  double sum = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Time from = std::max(points[i].time, range.begin);
    const Time to = i + 1 < points.size() ? std::min(points[i + 1].time, range.end) : range.end;
    if (to > from) sum += points[i].mean * to_seconds(to - from);
  }
  return range.length().count() > 0 ? sum / to_seconds(range.length()) : 0;
}

}  // namespace

std::shared_ptr<const std::vector<RateHigh>> visible_rates(const RowPlace& place) {
  return place.run().spans->level_of_detail().link_rates(place.row.index, visible_range(place), 1024);
}

std::string link_note(const RowPlace& place) {
  const double bandwidth = place.run().outline().run.machine.links[place.row.index].bandwidth;
  try {
    const double mean = mean_within(*visible_rates(place), visible_range(place));
    std::string text = format_rate(mean);
    if (bandwidth > 0) text += fmt::format(" of {}: {:.0f} %", format_rate(bandwidth), 100 * mean / bandwidth);
    const std::string node = link_node_text(place.run().outline().run, place.row.index);
    return node.empty() ? text : text + ", " + node;
  } catch (const InputError&) {
    return "";  // the row itself says why
  }
}

void draw_link_row(const RowPlace& place, CanvasFrame& frame) {
  const auto points = visible_rates(place);
  const double bandwidth = place.run().outline().run.machine.links[place.row.index].bandwidth;
  double high = bandwidth;
  if (!(high > 0))
    for (const RateHigh& point : *points) high = std::max(high, point.high);
  const double base = place.top + place.height - 1, full = place.height - 5;
  frame.figure.add(Line{{place.left, std::round(base - full) + 0.5},
                        {place.left + place.width, std::round(base - full) + 0.5},
                        place.theme.limit,
                        0.75,
                        true});
  if (!(high > 0) || points->empty()) return;
  const auto y = [&](double rate) { return base - full * std::min(1.0, rate / high); };

  Polyline area, line;
  area.fill = color_of(place.theme, "flow");
  line.stroke = mixed(place.theme.text, area.fill, 0.5);
  frame.words.insert("flow");
  const TimeRange range = visible_range(place);
  const auto first = std::partition_point(points->begin(), points->end(),
                                          [&](const RateHigh& point) { return point.time <= range.begin; });
  auto at = first == points->begin() ? first : std::prev(first);
  const double right = place.left + place.width;
  area.points.push_back({std::clamp(place.x(at->time), place.left, right), base});
  for (; at != points->end() && at->time <= range.end; ++at) {
    const auto next = std::next(at);
    const double x0 = std::clamp(place.x(at->time), place.left, right);
    const double x1 = next == points->end() ? right : std::clamp(place.x(next->time), place.left, right);
    area.points.push_back({x0, y(at->mean)});
    area.points.push_back({x1, y(at->mean)});
    line.points.push_back({x0, y(at->high)});
    line.points.push_back({x1, y(at->high)});
  }
  area.points.push_back({area.points.back().x, base});
  frame.figure.add(std::move(area));
  frame.figure.add(std::move(line));
}

void hit_link_row(const RowPlace& place, double, double, Hit& hit) {
  const auto points = visible_rates(place);
  const RateHigh* point = rate_at(*points, hit.time);
  const Link& link = place.run().outline().run.machine.links[place.row.index];
  if (!point) return;
  hit.text = fmt::format("{}: {} of {}", link.name, format_rate(point->mean), format_rate(link.bandwidth));
  if (point->high > point->mean * 1.01) hit.text += fmt::format("\nat most {} around here", format_rate(point->high));
}

}  // namespace memwall::gui
