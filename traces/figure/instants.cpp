#include "traces/figure/instants.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall::plot {
namespace {

constexpr double kPhaseText = 9;

// Greys: the colours of these figures are those of kinds of storage.
Color shade_of(const std::string& phase) {
  if (phase == "forward") return {0xe4, 0xe4, 0xe4};
  if (phase == "recompute") return {0xd2, 0xd2, 0xd2};
  if (phase == "backward") return {0xb8, 0xb8, 0xb8};
  if (phase == "optimizer") return {0x80, 0x80, 0x80};
  return {0xf2, 0xf2, 0xf2};
}

// Points [first, last) of the strip, mostly of the phase of span `phase`.
struct PhaseRun {
  std::size_t first = 0, last = 0, phase = 0;
};

// One phase per point: the one that covers most of it.
std::vector<PhaseRun> visible_runs(const Area& area, const std::vector<InstantSpan>& phases, const Scale& scale) {
  const auto points = static_cast<std::size_t>(area.width);
  std::vector<std::map<std::string, std::pair<double, std::size_t>>> covered(points);  // and a span of that name
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const double from = std::max(scale(to_seconds(phases[i].begin)) - area.left, 0.0);
    const double to = std::min(scale(to_seconds(phases[i].end)) - area.left, static_cast<double>(points));
    for (double at = from; at < to; at = std::floor(at) + 1) {
      auto& [length, span] = covered[static_cast<std::size_t>(at)][phases[i].name];
      length += std::min(std::floor(at) + 1, to) - at;
      span = i;
    }
  }
  std::vector<PhaseRun> runs;
  for (std::size_t point = 0; point < points; ++point) {
    const auto most = std::max_element(covered[point].begin(), covered[point].end(),
                                       [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    if (most == covered[point].end()) continue;
    const bool goes_on = !runs.empty() && runs.back().last == point && phases[runs.back().phase].name == most->first;
    if (goes_on)
      runs.back().last = point + 1;
    else
      runs.push_back({point, point + 1, most->second.second});
  }
  return runs;
}

void draw_event_axis(Figure& figure, const Area& area, Time begin, Time end, double lower) {
  const double low = static_cast<double>(begin.count()), high = static_cast<double>(end.count());
  const Scale scale{low, high, area.left, area.right()};
  const int most = std::max(3, static_cast<int>(area.width / 85));
  const double step = std::max(1.0, nice_step(high - low, most - 1));
  for (const double tick : nice_ticks(low, high, most)) {
    if (tick != std::floor(tick) || tick < 0)
      continue;  // there is no half event; what was before the first has no number
    const double x = scale(tick);
    figure.add(Line{{x, area.top}, {x, area.bottom()}, palette::kGrid, 0.75});
    figure.add(Line{{x, area.bottom() + lower}, {x, area.bottom() + lower + 4}, palette::kAxis, 0.75});
    const std::string text = format_tick(tick, step);
    const double middle = std::min(x, figure.width - 2 - text_width(text, kSmallSize) / 2);
    figure.add(Text{{middle, area.bottom() + lower + 15}, text, kSmallSize, Anchor::middle, palette::kText});
  }
  figure.add(Line{{area.left, area.bottom()}, {area.right(), area.bottom()}, palette::kAxis, 0.75});
  figure.add(Text{{area.left + area.width / 2, area.bottom() + lower + 29},
                  "events of the allocator, in order",
                  kSmallSize,
                  Anchor::middle,
                  palette::kFaintText});
}

}  // namespace

std::string format_instant(InstantUnit unit, Time at) {
  return unit == InstantUnit::time ? format_time(at) : "event " + format_tick(static_cast<double>(at.count()), 1);
}

void draw_instant_axis(Figure& figure, const Area& area, InstantUnit unit, Time begin, Time end, double lower) {
  if (unit == InstantUnit::time)
    draw_time_axis(figure, area, begin, end, lower);
  else
    draw_event_axis(figure, area, begin, end, lower);
}

void draw_instant_marks(Figure& figure, const Area& area, const std::vector<InstantMark>& marks, Time begin, Time end) {
  const Scale scale = time_scale(area, begin, end);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i].at < begin || marks[i].at > end) continue;
    const double x = scale(to_seconds(marks[i].at));
    const double next =
        i + 1 < marks.size() ? std::min(scale(to_seconds(marks[i + 1].at)), area.right()) : area.right();
    figure.add(GroupBegin{marks[i].label});
    figure.add(Line{{x, area.top - 4}, {x, area.bottom()}, palette::kAxis, 0.75, true});
    const std::string text = fit_text(marks[i].label, next - x - 6, kSmallSize);
    if (!text.empty()) figure.add(Text{{x + 3, area.top - 4}, text, kSmallSize, Anchor::start, palette::kFaintText});
    figure.add(GroupEnd{});
  }
}

void draw_phase_strip(Figure& figure, const Area& area, InstantUnit unit, const std::vector<InstantSpan>& phases,
                      Time begin, Time end) {
  const Scale scale = time_scale(area, begin, end);
  const double top = area.bottom() + 2;
  for (const PhaseRun& run : visible_runs(area, phases, scale)) {
    const double from = area.left + static_cast<double>(run.first), width = static_cast<double>(run.last - run.first);
    const std::string& name = phases[run.phase].name;
    const Color color = shade_of(name);
    const auto instant = [&](double x) {
      const double share = (x - area.left) / area.width;
      return Time(begin.count() + std::llround(share * static_cast<double>((end - begin).count())));
    };
    figure.add(GroupBegin{fmt::format("{}: about {} to {}", name, format_instant(unit, instant(from)),
                                      format_instant(unit, instant(from + width)))});
    figure.add(Rectangle{from, top, width, kPhaseStrip - 2, color, width > 3 ? palette::kBackground : kNoColor});
    if (text_width(name, kPhaseText) + 4 <= width)
      figure.add(
          Text{{from + width / 2, top + kPhaseStrip - 5}, name, kPhaseText, Anchor::middle, palette::text_on(color)});
    figure.add(GroupEnd{});
  }
}

Bytes most_between(const std::vector<Time>& times, const std::vector<Bytes>& values, const Scale& scale, double from,
                   double to) {
  Bytes most = 0;
  for (std::size_t i = 0; i < times.size() && scale(to_seconds(times[i])) <= to; ++i) {
    const bool lasts = i + 1 == times.size() || scale(to_seconds(times[i + 1])) > from;
    if (lasts) most = std::max(most, values[i]);
  }
  return most;
}

}  // namespace memwall::plot
