// A figure: what to draw, as a list, for any back end (SVG here, a painter in a viewer).
//
// Lengths are points, x grows to the right and y downward from the upper left corner.
// Later items cover earlier ones. A figure owns its texts and knows no screen.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace memwall {

struct Color {
  std::uint8_t red = 0, green = 0, blue = 0;
  std::uint8_t opacity = 255;  // 0 draws nothing
  bool operator==(const Color&) const = default;
};
inline constexpr Color kNoColor{0, 0, 0, 0};

struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};

// REQUIRES: width >= 0 and height >= 0.
struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
  Color fill;
  Color stroke = kNoColor;  // a line of 0.75 pt along the border
  double radius = 0;        // of the corners
};

struct Line {
  Point from, to;
  Color stroke;
  double width = 1;
  bool dashed = false;
};

// An open line, or with `fill` the area that it encloses when closed.
struct Polyline {
  std::vector<Point> points;
  Color stroke = kNoColor;
  double width = 1;
  Color fill = kNoColor;
};

enum class Anchor : std::uint8_t { start, middle, end };

// One line of UTF-8 text; `at` is on the base line, at the anchor.
struct Text {
  Point at;
  std::string text;
  double size = 11;
  Anchor anchor = Anchor::start;
  Color color;
  bool bold = false;
  double angle = 0;  // degrees, counter-clockwise about `at`
};

// Items until the matching GroupEnd belong together; `title` is shown on hovering. Groups nest.
struct GroupBegin {
  std::string title;
};
struct GroupEnd {};

using Item = std::variant<Rectangle, Line, Polyline, Text, GroupBegin, GroupEnd>;

struct Figure {
  double width = 0, height = 0;
  std::string title;  // for the window, or for those who cannot see the drawing
  std::vector<Item> items;

  template <class T>
  void add(T item) {
    items.emplace_back(std::move(item));
  }
  // One item that shows `title` on hovering.
  template <class T>
  void add(T item, std::string item_title) {
    items.emplace_back(GroupBegin{std::move(item_title)});
    items.emplace_back(std::move(item));
    items.emplace_back(GroupEnd{});
  }
};

}  // namespace memwall
