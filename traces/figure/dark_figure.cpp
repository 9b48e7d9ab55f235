#include "traces/figure/dark_figure.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "traces/figure/palette.h"

namespace memwall {
namespace {

// Text that palette::text_on chose, for it is neither paper nor ink.
bool is_on_a_shape(const Text& text) {
  const Color opaque{text.color.red, text.color.green, text.color.blue};
  return opaque == Color{0, 0, 0} || opaque == Color{255, 255, 255};
}

bool holds(const Rectangle& r, Point at) {
  return at.x >= r.x && at.x <= r.x + r.width && at.y >= r.y && at.y <= r.y + r.height;
}

bool holds(const Polyline& line, Point at) {
  const std::vector<Point>& p = line.points;
  bool inside = false;  // by the parity of the edges to the right
  for (std::size_t i = 0, j = p.size() - 1; i < p.size(); j = i++)
    if ((p[i].y > at.y) != (p[j].y > at.y) &&
        at.x < p[i].x + (at.y - p[i].y) / (p[j].y - p[i].y) * (p[j].x - p[i].x))
      inside = !inside;
  return inside;
}

std::optional<Color> fill_at(const Item& item, Point at) {
  if (const auto* r = std::get_if<Rectangle>(&item); r != nullptr && r->fill.opacity > 127 && holds(*r, at))
    return r->fill;
  if (const auto* p = std::get_if<Polyline>(&item); p != nullptr && p->fill.opacity > 127 && holds(*p, at))
    return p->fill;
  return std::nullopt;
}

class Darkening {
 public:
  explicit Darkening(Figure& figure) : items_(figure.items) {}

  void operator()(Rectangle& r) const {
    change(r.fill);
    change(r.stroke);
  }
  void operator()(Line& line) const { change(line.stroke); }
  void operator()(Polyline& line) const {
    change(line.stroke);
    change(line.fill);
  }
  void operator()(Text& text) const {
    if (!is_on_a_shape(text)) return change(text.color);
    // Its middle: a baseline may lie on the border of what it stands on.
    const Point middle{text.at.x, text.at.y - text.size / 3};
    for (std::size_t i = done; i-- > 0;)
      if (const auto fill = fill_at(items_[i], middle)) {
        text.color = palette::text_on(*fill);
        return;
      }
    change(text.color);
  }
  void operator()(GroupBegin&) const {}
  void operator()(GroupEnd&) const {}

  std::size_t done = 0;  // items that have their new colours

 private:
  static void change(Color& color) {
    if (color.opacity > 0) color = palette::in_dark(color);
  }
  std::vector<Item>& items_;
};

}  // namespace

Figure dark_figure(Figure light) {
  light.items.insert(light.items.begin(), Rectangle{0, 0, light.width, light.height, palette::kBackground});
  Darkening darken(light);
  for (; darken.done < light.items.size(); ++darken.done) std::visit(darken, light.items[darken.done]);
  return light;
}

}  // namespace memwall
