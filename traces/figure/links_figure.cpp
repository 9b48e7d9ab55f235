#include "traces/figure/links_figure.h"

#include <algorithm>
#include <cassert>

#include "traces/figure/palette.h"
#include "traces/figure/plot.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kLinkRowHeight = 54, kLinkRowGap = 24;
constexpr Color kLines[] = {palette::kOrange,     palette::kBlue,   palette::kGreen,
                            palette::kVermillion, palette::kPurple, palette::kSkyBlue};

void draw_flow(Figure& figure, const Area& area, const std::vector<double>& means, double high, Color color) {
  const Scale y{0, high, area.bottom(), area.top};
  const double width = area.width / static_cast<double>(means.size());
  std::vector<Point> points{{area.left, area.bottom()}};
  for (std::size_t i = 0; i < means.size(); ++i) {
    const double height = y(means[i]);
    if (height == points.back().y) continue;
    const double x = area.left + static_cast<double>(i) * width;
    points.push_back({x, points.back().y});
    points.push_back({x, height});
  }
  points.push_back({area.right(), points.back().y});
  points.push_back({area.right(), area.bottom()});
  Color fill = color;
  fill.opacity = 150;
  figure.add(Polyline{std::move(points), color, 0.75, fill});
}

void draw_link(Figure& figure, const Area& area, const LinkChart& link, Time begin, Time end, Color color) {
  const auto columns = static_cast<std::size_t>(area.width * 2);
  const std::vector<double> means = mean_rates(link, begin, end, columns);
  const double highest = *std::max_element(means.begin(), means.end());
  // A link that never carries much is drawn to its bandwidth all the same: that is what it tells.
  const double high = std::max({link.bandwidth, highest, 1.0}) * 1.06;
  const ScaledUnit unit = byte_unit(high);
  figure.add(GroupBegin{link.name + ": " + link.note});
  figure.add(Rectangle{area.left, area.top, area.width, area.height, palette::kBand});
  draw_value_axis(figure, area, high, unit, "", 4);
  figure.add(Text{{area.left, area.top - 5}, link.name, kLabelSize, Anchor::start, palette::kText, true});
  const double used = text_width(link.name, kLabelSize, true);
  figure.add(Text{{area.left + used + 10, area.top - 5},
                  fit_text(link.note, area.width * 0.6 - used, kSmallSize),
                  kSmallSize,
                  Anchor::start,
                  palette::kFaintText});
  figure.add(Text{{area.right(), area.top - 5},
                  unit.name + std::string("/s") + (link.bandwidth > 0 ? ", of " + format_rate(link.bandwidth) : ""),
                  kSmallSize,
                  Anchor::end,
                  palette::kFaintText});
  draw_flow(figure, area, means, high, color);
  if (link.bandwidth > 0) {
    const double y = Scale{0, high, area.bottom(), area.top}(link.bandwidth);
    figure.add(Line{{area.left, y}, {area.right(), y}, palette::kLimit, 1, true});
  }
  figure.add(GroupEnd{});
}

// Through a row, where no name is in the way.
void draw_mark_lines(Figure& figure, const Area& area, const LinksChart& chart) {
  const Scale x = time_scale(area, chart.begin, chart.end);
  for (const InstantMark& mark : chart.marks)
    if (mark.at >= chart.begin && mark.at <= chart.end)
      figure.add(Line{
          {x(to_seconds(mark.at)), area.top}, {x(to_seconds(mark.at)), area.bottom()}, palette::kAxis, 0.75, true});
}

}  // namespace

std::vector<double> mean_rates(const LinkChart& link, Time begin, Time end, std::size_t columns) {
  assert(begin <= end && link.times.size() == link.rates.size());
  std::vector<double> means(columns, 0);
  const double low = to_seconds(begin), width = to_seconds(end - begin) / static_cast<double>(columns);
  if (!(width > 0)) return means;
  for (std::size_t i = 0; i < link.times.size(); ++i) {
    if (link.rates[i] == 0) continue;
    const double from = std::max(0.0, (to_seconds(link.times[i]) - low) / width);
    const Time until = i + 1 < link.times.size() ? link.times[i + 1] : end;
    const double to = std::min(static_cast<double>(columns), (to_seconds(until) - low) / width);
    for (auto c = static_cast<std::size_t>(from); static_cast<double>(c) < to && c < columns; ++c) {
      const double share = std::min(to, static_cast<double>(c + 1)) - std::max(from, static_cast<double>(c));
      means[c] += link.rates[i] * std::max(0.0, share);
    }
  }
  return means;
}

Figure draw_links(const LinksChart& chart) {
  Figure figure;
  figure.width = kFigureWidth;
  figure.title = chart.title;
  const bool marked = std::any_of(chart.marks.begin(), chart.marks.end(), [&](const InstantMark& mark) {
    return mark.at >= chart.begin && mark.at <= chart.end;
  });
  // The names of marks stand above those of the first link.
  const double top = draw_title(figure, chart.title, chart.subtitle) + (marked ? 28 : 12);
  Area area{kMargin + 46, top, kFigureWidth - 2 * kMargin - 46 - 8, 0};
  area.height =
      std::max(kLinkRowHeight, static_cast<double>(chart.links.size()) * (kLinkRowHeight + kLinkRowGap) - kLinkRowGap);
  // The vertical lines first, so that they lie behind; each row then covers them with its band.
  draw_time_axis(figure, area, chart.begin, chart.end);
  std::size_t color = 0;
  double y = top;
  for (const LinkChart& link : chart.links) {
    draw_link(figure, {area.left, y, area.width, kLinkRowHeight}, link, chart.begin, chart.end,
              kLines[color++ % std::size(kLines)]);
    draw_mark_lines(figure, {area.left, y, area.width, kLinkRowHeight}, chart);
    y += kLinkRowHeight + kLinkRowGap;
  }
  if (marked) draw_instant_marks(figure, {area.left, top - 14, area.width, 0}, chart.marks, chart.begin, chart.end);
  figure.height = area.bottom() + 42;
  return figure;
}

}  // namespace memwall
