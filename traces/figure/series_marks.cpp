#include "traces/figure/series_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "traces/figure/palette.h"
#include "traces/figure/plot.h"
#include "traces/figure/text_metrics.h"

namespace memwall::plot {
namespace {

constexpr std::array kSeriesColors{palette::kBlue,   palette::kVermillion, palette::kGreen, palette::kPurple,
                                   palette::kOrange, palette::kSkyBlue,    palette::kGray};
constexpr std::size_t kMarkerShapes = 4;
constexpr std::size_t kMostNamed = 40;
constexpr double kSeriesRow = 17, kSeriesLine = 12, kBesideMarker = 14;

std::vector<Point> outline_of(Point at, std::size_t shape, double size) {
  const auto [x, y] = at;
  switch (shape) {
    case 0: {
      std::vector<Point> circle;
      for (int i = 0; i < 16; ++i)
        circle.push_back({x + size * std::cos(i * 0.392699081698724), y + size * std::sin(i * 0.392699081698724)});
      return circle;
    }
    case 1:
      return {{x - size, y - size}, {x + size, y - size}, {x + size, y + size}, {x - size, y + size}};
    case 2:
      return {{x, y - 1.3 * size}, {x + 1.2 * size, y + size}, {x - 1.2 * size, y + size}};
    default:
      return {{x, y - 1.4 * size}, {x + 1.4 * size, y}, {x, y + 1.4 * size}, {x - 1.4 * size, y}};
  }
}

std::vector<std::string> lines_of(const std::string& name, double width) {
  return wrap_text(name, width - kBesideMarker, kSmallSize, false, 2);
}
double height_of(const std::vector<std::string>& lines) { return kSeriesRow + (lines.size() > 1 ? kSeriesLine : 0); }

}  // namespace

Color color_of_series(std::size_t series) { return kSeriesColors[series % kSeriesColors.size()]; }

void draw_marker(Figure& figure, Point at, std::size_t series, double size, MarkerStyle style) {
  const Color color = color_of_series(series);
  const bool is_hollow = style == MarkerStyle::hollow;
  const Color edge = is_hollow ? color : style == MarkerStyle::edged ? palette::kText : palette::kBackground;
  const double width = is_hollow ? 1.5 : style == MarkerStyle::edged ? 2 : 0.75;
  std::vector<Point> points = outline_of(at, (series / kSeriesColors.size()) % kMarkerShapes, size);
  points.push_back(points.front());
  figure.add(Polyline{std::move(points), edge, width, is_hollow ? palette::kBackground : color});
}

void draw_cross(Figure& figure, Point at, Color color) {
  constexpr double kHalf = 3.5;
  figure.add(Line{{at.x - kHalf, at.y - kHalf}, {at.x + kHalf, at.y + kHalf}, color, 1.5});
  figure.add(Line{{at.x - kHalf, at.y + kHalf}, {at.x + kHalf, at.y - kHalf}, color, 1.5});
}

double height_of_series_key(double width, const std::vector<std::string>& names, const MarkWords& words) {
  double height = 26;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) height += height_of(lines_of(names[i], width));
  const int rows =
      (names.size() > kMostNamed ? 1 : 0) + (words.hollow ? 1 : 0) + (words.crosses ? 1 : 0) + (words.edged ? 1 : 0);
  return height + kSeriesRow * rows;
}

double draw_series_key(Figure& figure, double left, double top, double right, const std::string& heading,
                       const std::vector<std::string>& names, const MarkWords& words) {
  double row = top + 8;
  const double room = right - left - kBesideMarker;
  if (!heading.empty())
    figure.add(Text{{left, row + 4},
                    fit_text(heading, right - left, kSmallSize),
                    kSmallSize,
                    Anchor::start,
                    palette::kFaintText},
               heading);
  row += 18;
  const std::size_t named = names.size() <= kMostNamed ? names.size() : kMostNamed;
  for (std::size_t i = 0; i < named; ++i) {
    const std::vector<std::string> lines = lines_of(names[i], right - left);
    figure.add(GroupBegin{names[i]});
    draw_marker(figure, {left + 4, row}, i, kMarker);
    for (std::size_t line = 0; line < lines.size(); ++line)
      figure.add(Text{{left + kBesideMarker, row + 3.5 + kSeriesLine * static_cast<double>(line)},
                      lines[line],
                      kSmallSize,
                      Anchor::start,
                      palette::kText});
    figure.add(GroupEnd{});
    row += height_of(lines);
  }
  const auto say = [&](const std::string& text) {
    figure.add(Text{{left + kBesideMarker, row + 3.5},
                    fit_text(text, room, kSmallSize),
                    kSmallSize,
                    Anchor::start,
                    palette::kFaintText});
    row += kSeriesRow;
  };
  if (named < names.size()) say(fmt::format("and {} more", names.size() - named));
  if (words.edged) {
    figure.add(Rectangle{left, row - 4, 8, 8, palette::kBackground, palette::kText, 4});
    say("edged: on the Pareto front");
  }
  if (words.hollow) {
    figure.add(Rectangle{left, row - 4, 8, 8, palette::kBackground, palette::kGray, 4});
    say("hollow: does not meet the conditions");
  }
  if (words.crosses) {
    draw_cross(figure, {left + 4, row}, palette::kGray);
    say("failed");
  }
  return row;
}

}  // namespace memwall::plot
