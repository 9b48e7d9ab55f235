#include "traces/figure/name_axis.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall::plot {
namespace {

constexpr double kSlant = 35;         // degrees
constexpr double kMostSlanted = 140;  // height
constexpr double kLineDistance = 22;  // of slanted lines along the axis
constexpr double kNameGap = 6;

double least_distance(const std::vector<AxisTick>& names) {
  double least = INFINITY;
  for (std::size_t i = 1; i < names.size(); ++i) least = std::min(least, names[i].at - names[i - 1].at);
  return least;
}

// A key may stand to the right.
bool stand_beside_each_other(const Area& area, const std::vector<AxisTick>& names) {
  double free_from = 0;
  for (const AxisTick& name : names) {
    const double half = text_width(name.text, kSmallSize) / 2;
    if (name.at - half < free_from || name.at + half > area.right() + 12) return false;
    free_from = name.at + half + kNameGap;
  }
  return true;
}

// Returns their height.
double draw_slanted(Figure& figure, const Area& area, const std::vector<AxisTick>& names) {
  const double sine = std::sin(kSlant * std::numbers::pi / 180), cosine = std::cos(kSlant * std::numbers::pi / 180);
  const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil(kLineDistance / least_distance(names))));
  double height = 0;
  for (std::size_t i = 0; i < names.size(); i += every) {
    const double room = std::min(kMostSlanted / sine, (names[i].at - 8) / cosine);
    const std::string text = fit_text(names[i].text, room, kSmallSize);
    height = std::max(height, text_width(text, kSmallSize) * sine);
    figure.add(GroupBegin{names[i].text});
    figure.add(
        Text{{names[i].at + 3, area.bottom() + 13}, text, kSmallSize, Anchor::end, palette::kText, false, kSlant});
    figure.add(GroupEnd{});
  }
  return height + 4;
}

}  // namespace

double draw_name_axis(Figure& figure, const Area& area, const std::vector<AxisTick>& names, const std::string& label,
                      bool has_grid) {
  for (const AxisTick& name : names) {
    if (!has_grid) break;
    figure.add(Line{{name.at, area.top}, {name.at, area.bottom() + 4}, palette::kGrid, 0.75});
  }
  if (has_grid) figure.add(Line{{area.left, area.bottom()}, {area.right(), area.bottom()}, palette::kAxis, 0.75});
  double slanted = 0;
  if (!stand_beside_each_other(area, names))
    slanted = draw_slanted(figure, area, names);
  else
    for (const AxisTick& name : names)
      figure.add(Text{{name.at, area.bottom() + 16}, name.text, kSmallSize, Anchor::middle, palette::kText});
  figure.add(GroupBegin{label});
  figure.add(Text{{area.left + area.width / 2, area.bottom() + 34 + slanted},
                  fit_text(label, area.width, kLabelSize),
                  kLabelSize,
                  Anchor::middle,
                  palette::kFaintText});
  figure.add(GroupEnd{});
  return kBelowAxis + slanted;
}

}  // namespace memwall::plot
