#include "traces/figure/memory_marks.h"

#include <algorithm>

#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall::plot {
namespace {

constexpr double kFarAway = 2.5;  // times what is occupied

}  // namespace

bool is_near(Bytes capacity, Bytes occupied) {
  return capacity > 0 && static_cast<double>(capacity) <= kFarAway * static_cast<double>(occupied);
}

void draw_capacity(Figure& figure, const Area& area, double top, Bytes capacity, Bytes occupied, bool label_right) {
  if (capacity <= 0) return;
  const std::string text = "capacity " + format_bytes(capacity);
  if (!is_near(capacity, occupied)) {
    figure.add(Text{{area.right(), area.top - 5}, text + " (far above)", kSmallSize, Anchor::end, palette::kFaintText});
    return;
  }
  const double at = Scale{0, top, area.bottom(), area.top}(static_cast<double>(capacity));
  figure.add(Line{{area.left, at}, {area.right(), at}, palette::kLimit, 1.5, true});
  figure.add(Text{{label_right ? area.right() - 4 : area.left + 6, at - 4},
                  text,
                  kSmallSize,
                  label_right ? Anchor::end : Anchor::start,
                  palette::kLimit,
                  true});
}

void draw_peak(Figure& figure, const Area& area, Point at, const std::string& text) {
  draw_peak(figure, area, at, text, [](double, double) { return 1e9; });
}

void draw_peak(Figure& figure, const Area& area, Point at, const std::string& text,
               const std::function<double(double, double)>& ceiling) {
  figure.add(Line{at, {at.x, area.bottom()}, palette::kText, 0.75, true});
  figure.add(Rectangle{at.x - 2.5, at.y - 2.5, 5, 5, palette::kText, palette::kBackground, 2.5});
  const double width = text_width(text, kSmallSize, true);
  const bool left = at.x + 8 + width > area.right();
  const double x0 = left ? at.x - 8 - width : at.x + 8;
  const double y = std::min(at.y, ceiling(x0 - 3, x0 + width + 3) + 2);
  figure.add(Rectangle{x0 - 3, y - 17, width + 6, 14, {255, 255, 255, 225}, kNoColor, 2});
  figure.add(Text{{left ? at.x - 8 : at.x + 8, y - 6.5},
                  text,
                  kSmallSize,
                  left ? Anchor::end : Anchor::start,
                  palette::kText,
                  true});
}

}  // namespace memwall::plot
