// How busy each pixel of a row is, and with what: for spans too short to be seen one by one, and for
// cells of a level of detail. A pixel that is busy for 5 % of its time does not look full.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "traces/figure/figure.h"

namespace memwall::gui {

// `over` laid on `under`, `share` of it.
Color mixed(Color under, Color over, double share);

class PixelColumns {
 public:
  static constexpr int kMostCategories = 14;
  // Pixels [left, left + width) of the canvas. REQUIRES: 0 < categories <= kMostCategories.
  PixelColumns(double left, double width, int categories);

  // [x0, x1), of which `share` is busy with a category. What lies outside is cut.
  void add(double x0, double x1, std::uint8_t category, double share = 1);
  // Busy share of pixel i, 0 to 1 but for rounding, and more where spans overlap.
  double busy(std::size_t i) const;
  std::size_t size() const { return columns_.size(); }
  bool empty() const { return first_ >= last_; }

  // Each pixel in the colour of the category that takes most of it, the paler the less busy, on `background`; even the
  // least busy is seen. Neighbours of one colour become one rectangle.
  void draw(Figure& figure, double top, double height, const Color* colors, Color background) const;
  // By category: does it take most of any pixel, so that draw() shows its colour?
  std::vector<bool> shown() const;

 private:
  using Column = std::array<float, kMostCategories>;
  struct Most {
    int category = 0;
    float sum = 0;  // of all categories
  };
  Most most_of(const Column& column) const;
  double left_;
  int categories_;
  std::vector<Column> columns_;
  std::size_t first_, last_ = 0;  // pixels that were touched
};

}  // namespace memwall::gui
