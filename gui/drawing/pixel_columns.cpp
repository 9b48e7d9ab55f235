#include "gui/drawing/pixel_columns.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace memwall::gui {
namespace {

constexpr int kShades = 12;        // of a colour: few, so that neighbours often have the same
constexpr double kFaintest = 0.2;  // of the least busy pixel

}  // namespace

Color mixed(Color under, Color over, double share) {
  const auto mix = [&](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + (b - a) * std::clamp(share, 0.0, 1.0)));
  };
  return {mix(under.red, over.red), mix(under.green, over.green), mix(under.blue, over.blue)};
}

PixelColumns::PixelColumns(double left, double width, int categories)
    : left_(left),
      categories_(categories),
      columns_(static_cast<std::size_t>(std::max(1.0, std::ceil(width)))),
      first_(columns_.size()) {
  assert(categories > 0 && categories <= kMostCategories);
}

void PixelColumns::add(double x0, double x1, std::uint8_t category, double share) {
  x0 = std::max(0.0, x0 - left_);
  x1 = std::min(static_cast<double>(columns_.size()), x1 - left_);
  if (!(x1 > x0)) return;
  const auto first = static_cast<std::size_t>(x0);
  const auto last = std::min(columns_.size() - 1, static_cast<std::size_t>(x1));
  first_ = std::min(first_, first);
  last_ = std::max(last_, last + 1);
  if (first == last) {
    columns_[first][category] += static_cast<float>((x1 - x0) * share);
    return;
  }
  columns_[first][category] += static_cast<float>((static_cast<double>(first + 1) - x0) * share);
  for (std::size_t i = first + 1; i < last; ++i) columns_[i][category] += static_cast<float>(share);
  columns_[last][category] += static_cast<float>((x1 - static_cast<double>(last)) * share);
}

double PixelColumns::busy(std::size_t i) const {
  double sum = 0;
  for (int w = 0; w < categories_; ++w) sum += columns_[i][static_cast<std::size_t>(w)];
  return sum;
}

PixelColumns::Most PixelColumns::most_of(const Column& column) const {
  Most most;
  for (int w = 0; w < categories_; ++w) {
    const float value = column[static_cast<std::size_t>(w)];
    most.sum += value;
    if (value > column[static_cast<std::size_t>(most.category)]) most.category = w;
  }
  return most;
}

std::vector<bool> PixelColumns::shown() const {
  std::vector<bool> shown(static_cast<std::size_t>(categories_), false);
  for (std::size_t i = first_; i < last_; ++i)
    if (const Most most = most_of(columns_[i]); most.sum > 0) shown[static_cast<std::size_t>(most.category)] = true;
  return shown;
}

void PixelColumns::draw(Figure& figure, double top, double height, const Color* colors, Color background) const {
  int drawn = -1;  // category x (kShades + 1) + shade; -1: nothing
  std::size_t begin = first_;
  const auto flush = [&](std::size_t end) {
    if (drawn < 0 || begin == end) return;
    const double share = static_cast<double>(drawn % (kShades + 1)) / kShades;
    const Color color = mixed(background, colors[drawn / (kShades + 1)], kFaintest + (1 - kFaintest) * share);
    figure.items.emplace_back(
        Rectangle{left_ + static_cast<double>(begin), top, static_cast<double>(end - begin), height, color});
  };
  for (std::size_t i = first_; i < last_; ++i) {
    const Most most = most_of(columns_[i]);
    const int shade = std::clamp(static_cast<int>(std::lround(most.sum * kShades)), 0, kShades);
    const int now = most.sum > 0 ? most.category * (kShades + 1) + shade : -1;
    if (now == drawn) continue;
    flush(i);
    drawn = now;
    begin = i;
  }
  flush(last_);
}

}  // namespace memwall::gui
