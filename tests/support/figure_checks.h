// What tests look for in a figure.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "traces/figure/figure.h"
#include "traces/figure/text_metrics.h"

namespace memwall {

template <class T>
std::vector<T> all_of(const Figure& figure) {
  std::vector<T> found;
  for (const Item& item : figure.items)
    if (const T* one = std::get_if<T>(&item)) found.push_back(*one);
  return found;
}

inline const Text* text_with(const std::vector<Text>& texts, const std::string& part) {
  const auto found =
      std::find_if(texts.begin(), texts.end(), [&](const Text& t) { return t.text.find(part) != std::string::npos; });
  return found == texts.end() ? nullptr : &*found;
}

inline bool has_title(const Figure& figure, const std::string& part) {
  const std::vector<GroupBegin> groups = all_of<GroupBegin>(figure);
  return std::any_of(groups.begin(), groups.end(),
                     [&](const GroupBegin& g) { return g.title.find(part) != std::string::npos; });
}

struct Box {
  double left, right, top, bottom;
};

inline Box box_of(const Text& t) {
  const double width = text_width(t.text, t.size, t.bold);
  const double left = t.anchor == Anchor::start    ? t.at.x
                      : t.anchor == Anchor::middle ? t.at.x - width / 2
                                                   : t.at.x - width;
  return {left, left + width, t.at.y - 0.75 * t.size, t.at.y + 0.2 * t.size};
}

// Every text within the figure, and no two over each other.
inline void expect_legible(const Figure& figure) {
  const std::vector<Text> texts = all_of<Text>(figure);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].angle != 0) continue;
    const Box a = box_of(texts[i]);
    EXPECT_GE(a.left, -0.5) << texts[i].text;
    EXPECT_LE(a.right, figure.width + 0.5) << texts[i].text;
    EXPECT_GE(a.top, 0) << texts[i].text;
    EXPECT_LE(a.bottom, figure.height) << texts[i].text;
    for (std::size_t k = i + 1; k < texts.size(); ++k) {
      if (texts[k].angle != 0) continue;
      const Box b = box_of(texts[k]);
      const bool apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      EXPECT_TRUE(apart) << "'" << texts[i].text << "' and '" << texts[k].text << "'";
    }
  }
  int depth = 0;
  for (const Item& item : figure.items) {
    depth += std::holds_alternative<GroupBegin>(item);
    depth -= std::holds_alternative<GroupEnd>(item);
    EXPECT_GE(depth, 0);
  }
  EXPECT_EQ(depth, 0);
}

inline void expect_inside(const Figure& figure, Point at, const std::string& what) {
  constexpr double kSlack = 1.5;  // half a line
  EXPECT_TRUE(std::isfinite(at.x) && std::isfinite(at.y)) << what;
  EXPECT_GE(at.x, -kSlack) << what;
  EXPECT_LE(at.x, figure.width + kSlack) << what;
  EXPECT_GE(at.y, -kSlack) << what;
  EXPECT_LE(at.y, figure.height + kSlack) << what;
}

// The corners of everything that is drawn, turned texts included.
inline void expect_within_page(const Figure& figure) {
  for (const Rectangle& r : all_of<Rectangle>(figure)) {
    expect_inside(figure, {r.x, r.y}, "rectangle");
    expect_inside(figure, {r.x + r.width, r.y + r.height}, "rectangle");
    EXPECT_GE(r.width, 0);
    EXPECT_GE(r.height, 0);
  }
  for (const Line& line : all_of<Line>(figure)) {
    expect_inside(figure, line.from, "line");
    expect_inside(figure, line.to, "line");
  }
  for (const Polyline& line : all_of<Polyline>(figure))
    for (const Point& at : line.points) expect_inside(figure, at, "polyline");
  for (const Text& text : all_of<Text>(figure)) {
    Text level = text;
    level.at = {0, 0};
    const Box box = box_of(level);
    const double turn = text.angle * 0.017453292519943295, c = std::cos(turn), s = std::sin(turn);
    for (const auto& [x, y] : {Point{box.left, box.top}, Point{box.right, box.top}, Point{box.left, box.bottom},
                               Point{box.right, box.bottom}})
      expect_inside(figure, {text.at.x + x * c + y * s, text.at.y - x * s + y * c}, text.text);
  }
}

}  // namespace memwall
