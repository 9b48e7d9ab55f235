#include "traces/figure/plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall::plot {
double draw_title(Figure& figure, const std::string& title, const std::string& subtitle) {
  const double width = figure.width - 2 * kMargin;
  double y = kMargin;
  figure.add(GroupBegin{title});
  for (const std::string& line : wrap_text(title, width, kTitleSize, true))
    figure.add(Text{{kMargin, y += kTitleSize + 2}, line, kTitleSize, Anchor::start, palette::kText, true});
  for (const std::string& line : wrap_text(subtitle, width, kLabelSize))
    figure.add(Text{{kMargin, y += kLabelSize + 5}, line, kLabelSize, Anchor::start, palette::kFaintText});
  figure.add(GroupEnd{});
  return y + 10;
}

double draw_legend(Figure& figure, double left, double top, double right, const std::vector<LegendEntry>& entries) {
  if (entries.empty()) return top;
  constexpr double kRow = 16, kBox = 10;
  double x = left, y = top;
  for (const LegendEntry& entry : entries) {
    const std::string name = fit_text(entry.name, right - left - 20, kSmallSize);
    const double width = 2 * kBox + 4 + text_width(name, kSmallSize);
    if (x > left && x + width > right) {
      x = left;
      y += kRow;
    }
    const bool line = entry.mark != LegendMark::box;
    if (line)
      figure.add(
          Line{{x, y + kBox / 2}, {x + kBox + 4, y + kBox / 2}, entry.color, 1.5, entry.mark == LegendMark::dashes});
    else
      figure.add(Rectangle{x, y, kBox, kBox, entry.color, palette::kAxis, 1});
    figure.add(Text{{x + kBox + (line ? 8 : 4), y + kBox - 1}, name, kSmallSize, Anchor::start, palette::kText});
    x += width + (line ? 16 : 12);
  }
  return y + kRow + 4;
}

void draw_time_axis(Figure& figure, const Area& area, Time begin, Time end, double lower) {
  const double low = to_seconds(begin), high = to_seconds(end);
  const ScaledUnit unit = time_unit(std::max(std::abs(low), std::abs(high)));
  const Scale scale = time_scale(area, begin, end);
  const int most = std::max(3, static_cast<int>(area.width / 85));
  const double step = nice_step((high - low) / unit.factor, most - 1);
  for (const double tick : nice_ticks(low / unit.factor, high / unit.factor, most)) {
    const double x = scale(tick * unit.factor);
    figure.add(Line{{x, area.top}, {x, area.bottom()}, palette::kGrid, 0.75});
    figure.add(Line{{x, area.bottom() + lower}, {x, area.bottom() + lower + 4}, palette::kAxis, 0.75});
    figure.add(
        Text{{x, area.bottom() + lower + 15}, format_tick(tick, step), kSmallSize, Anchor::middle, palette::kText});
  }
  figure.add(Line{{area.left, area.bottom()}, {area.right(), area.bottom()}, palette::kAxis, 0.75});
  figure.add(Text{{area.left + area.width / 2, area.bottom() + lower + 29},
                  fmt::format("time ({})", unit.name),
                  kSmallSize,
                  Anchor::middle,
                  palette::kFaintText});
}

void draw_value_axis(Figure& figure, const Area& area, double high, const ScaledUnit& unit, const std::string& label,
                     int most) {
  const Scale scale{0, high, area.bottom(), area.top};
  const double step = nice_step(high / unit.factor, most - 1);
  double widest = 0;
  for (const double tick : nice_ticks(0, high / unit.factor, most)) {
    const double y = scale(tick * unit.factor);
    const std::string text = format_tick(tick, step);
    widest = std::max(widest, text_width(text, kSmallSize));
    figure.add(Line{{area.left, y}, {area.right(), y}, palette::kGrid, 0.75});
    figure.add(Text{{area.left - 5, y + 3.5}, text, kSmallSize, Anchor::end, palette::kText});
  }
  figure.add(Line{{area.left, area.top}, {area.left, area.bottom()}, palette::kAxis, 0.75});
  if (!label.empty())
    figure.add(Text{{area.left - widest - 12, area.top + area.height / 2},
                    label,
                    kSmallSize,
                    Anchor::middle,
                    palette::kFaintText,
                    false,
                    90});
}

Scale time_scale(const Area& area, Time begin, Time end) {
  return {to_seconds(begin), to_seconds(end), area.left, area.right()};
}

void draw_stacked_bar(Figure& figure, const Area& area, const std::vector<Part>& parts, double full) {
  const Scale scale{0, full, 0, area.width};
  double sum = 0;
  for (const Part& part : parts) {
    const double from = area.left + scale(sum);
    sum += part.value;
    const double width = area.left + scale(sum) - from;
    if (!(width > 0)) continue;
    const Color color = palette::color_of(part.name);
    figure.add(GroupBegin{part.name + ": " + part.value_text});
    figure.add(Rectangle{from, area.top, width, area.height, color, width > 2 ? palette::kBackground : kNoColor});
    if (text_width(part.value_text, kSmallSize) + 6 <= width)
      figure.add(Text{{from + width / 2, area.top + area.height / 2 + 3.5},
                      part.value_text,
                      kSmallSize,
                      Anchor::middle,
                      palette::text_on(color)});
    figure.add(GroupEnd{});
  }
}

std::vector<LegendEntry> legend_of(const std::vector<std::vector<Part>>& bars) {
  std::vector<LegendEntry> entries;
  for (const std::vector<Part>& bar : bars)
    for (const Part& part : bar)
      if (part.value > 0 &&
          std::none_of(entries.begin(), entries.end(), [&](const LegendEntry& e) { return e.name == part.name; }))
        entries.push_back({part.name, palette::color_of(part.name)});
  return entries;
}

}  // namespace memwall::plot
