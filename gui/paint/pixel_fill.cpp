#include "gui/paint/pixel_fill.h"

#include <QPaintDevice>
#include <QPaintEngine>
#include <QPainter>

#include <algorithm>
#include <cmath>

#include "gui/paint/qt_color.h"

namespace memwall::gui {
namespace {

// Less than this share of a pixel is not seen.
constexpr double kUnseen = 1.0 / 64;

QColor with_share(QColor color, double share) {
  if (share < 1) color.setAlpha(static_cast<int>(std::lround(color.alpha() * share)));
  return color;
}

}  // namespace

bool PixelFill::suits(const QPainter& painter) {
  const QPaintEngine* engine = painter.paintEngine();
  const QTransform transform = painter.deviceTransform();
  return engine != nullptr && engine->type() == QPaintEngine::Raster && transform.type() <= QTransform::TxScale &&
         transform.m11() > 0 && transform.m22() > 0;
}

PixelFill::PixelFill(QPainter& painter) : painter_(painter) {
  const QTransform transform = painter.deviceTransform();
  scale_x_ = transform.m11();
  scale_y_ = transform.m22();
  shift_x_ = transform.dx();
  shift_y_ = transform.dy();
  // Of a widget, its window: a little more than can be seen.
  const QPaintDevice* device = painter.device();
  right_ = std::min(32000.0, device->width() * device->devicePixelRatioF() + std::max(0.0, shift_x_) + 1);
  bottom_ = std::min(32000.0, device->height() * device->devicePixelRatioF() + std::max(0.0, shift_y_) + 1);
}

void PixelFill::rectangle(double x0, double y0, double x1, double y1, Color color) {
  x0 = std::max(-1.0, x0 * scale_x_ + shift_x_);
  x1 = std::min(right_, x1 * scale_x_ + shift_x_);
  y0 = std::max(-1.0, y0 * scale_y_ + shift_y_);
  y1 = std::min(bottom_, y1 * scale_y_ + shift_y_);
  if (!(x0 < x1) || !(y0 < y1)) return;
  cells(x0, x1, y0, y1, qt_color(color));
}

// Whole pixels in the middle, and a column or row of shares at each side that lies within a pixel.
void PixelFill::cells(double x0, double x1, double y0, double y1, QColor color) {
  const double left = std::floor(x0 + kUnseen), right = std::ceil(x1 - kUnseen);
  const double top = std::floor(y0 + kUnseen), bottom = std::ceil(y1 - kUnseen);
  const auto share = [](double pixel, double from, double to) {
    const double covered = std::min(pixel + 1, to) - std::max(pixel, from);
    return covered > 1 - kUnseen ? 1.0 : covered;
  };
  const auto row = [&](double from, double to, double covered) {
    if (right <= left || to <= from) return;
    const double first = share(left, x0, x1);
    const double last = right - left > 1 ? share(right - 1, x0, x1) : 1;
    const double whole_from = first < 1 ? left + 1 : left, whole_to = last < 1 ? right - 1 : right;
    if (first < 1) cell(left, left + 1, from, to, color, first * covered);
    if (whole_from < whole_to) cell(whole_from, whole_to, from, to, color, covered);
    if (last < 1) cell(right - 1, right, from, to, color, last * covered);
  };
  if (bottom <= top) return;
  const double first = share(top, y0, y1), last = bottom - top > 1 ? share(bottom - 1, y0, y1) : 1;
  if (first < 1) row(top, top + 1, first);
  row(first < 1 ? top + 1 : top, last < 1 ? bottom - 1 : bottom, 1);
  if (last < 1) row(bottom - 1, bottom, last);
}

// Whole pixels [x0, x1) x [y0, y1), each covered by `share`.
void PixelFill::cell(double x0, double x1, double y0, double y1, QColor color, double share) {
  const QRectF place((x0 - shift_x_) / scale_x_, (y0 - shift_y_) / scale_y_, (x1 - x0) / scale_x_,
                     (y1 - y0) / scale_y_);
  painter_.fillRect(place, with_share(color, share));
}

// --- step areas

// Into the way there and the way back, both from left to right. False where it is none, or starts elsewhere than left.
bool PixelFill::split(const std::vector<Point>& points) {
  there_.clear();
  back_.clear();
  bool forward = true;
  const std::size_t count = points.size();
  for (std::size_t i = 0; i < count; ++i) {
    const Point &from = points[i], &to = points[i + 1 == count ? 0 : i + 1];
    if (from.x == to.x) continue;
    if (from.y != to.y) return false;
    if (to.x < from.x) forward = false;
    if (to.x > from.x && !forward) return false;
    const double y = std::clamp(from.y * scale_y_ + shift_y_, -1.0, bottom_);
    (forward ? there_ : back_).push_back({std::min(from.x, to.x) * scale_x_ + shift_x_, y});
  }
  std::reverse(back_.begin(), back_.end());
  return !there_.empty() && !back_.empty() && there_.front().x == back_.front().x;
}

bool PixelFill::step_area(const std::vector<Point>& points, Color given) {
  if (points.size() < 4 || !split(points)) return false;
  double end = points.front().x;
  for (const Point& point : points) end = std::max(end, point.x);
  end = std::min(end * scale_x_ + shift_x_, right_);
  const QColor color = qt_color(given);
  changes_.assign(static_cast<std::size_t>(bottom_) + 4, 0);
  column_ = -2;
  std::size_t a = 0, b = 0;
  double x = there_.front().x;
  while (x < end) {
    const double next_a = a + 1 < there_.size() ? there_[a + 1].x : end;
    const double next_b = b + 1 < back_.size() ? back_[b + 1].x : end;
    const double next = std::min({next_a, next_b, end});
    if (next > std::max(x, -1.0))
      piece(std::max(x, -1.0), next, std::min(there_[a].y, back_[b].y), std::max(there_[a].y, back_[b].y), color);
    if (next_a <= next && a + 1 < there_.size()) ++a;
    if (next_b <= next && b + 1 < back_.size()) ++b;
    if (next >= end) break;
    x = next;
  }
  flush_column(color);
  return true;
}

// Whole columns at once; what covers a column in part is added up until the next column begins.
void PixelFill::piece(double x0, double x1, double top, double bottom, QColor color) {
  const double first = std::floor(x0), last = std::floor(x1);
  if (static_cast<long>(first) != column_) {
    flush_column(color);
    column_ = static_cast<long>(first);
  }
  double whole = first;
  if (x0 > first || last == first) {
    add_to_column(std::min(x1, first + 1) - x0, top, bottom);
    whole = first + 1;
  }
  if (last > whole && bottom > top) cells(whole, last, top, bottom, color);
  if (last >= whole && x1 > last) {
    flush_column(color);
    column_ = static_cast<long>(last);
    add_to_column(x1 - last, top, bottom);
  }
}

void PixelFill::add_to_column(double share, double top, double bottom) {
  if (!(bottom > top) || !(share > 0)) return;
  const auto at = [&](double row) -> float& { return changes_[static_cast<std::size_t>(row + 1)]; };  // row -1 exists
  const auto add = [&](double from, double to, double part) {
    at(from) += static_cast<float>(part);
    at(to) -= static_cast<float>(part);
  };
  const double first = std::floor(top), last = std::floor(bottom);
  const int from = static_cast<int>(first), to = static_cast<int>(std::ceil(bottom));
  first_row_ = last_row_ < first_row_ ? from : std::min(first_row_, from);
  last_row_ = std::max(last_row_, to);
  if (first == last) return add(first, first + 1, share * (bottom - top));
  add(first, first + 1, share * (first + 1 - top));
  if (last > first + 1) add(first + 1, last, share);
  if (bottom > last) add(last, last + 1, share * (bottom - last));
}

void PixelFill::flush_column(QColor color) {
  double covered = 0;
  int from = first_row_, alpha = 0;
  const auto end_run = [&](int to) {
    if (alpha > 0 && to > from) {
      QColor shade = color;
      shade.setAlpha(alpha);
      cell(static_cast<double>(column_), static_cast<double>(column_ + 1), from, to, shade, 1);
    }
    from = to;
  };
  for (int row = first_row_; row <= last_row_; ++row) {
    covered += static_cast<double>(changes_[static_cast<std::size_t>(row + 1)]);
    changes_[static_cast<std::size_t>(row + 1)] = 0;
    const int now = static_cast<int>(std::lround(std::clamp(covered, 0.0, 1.0) * color.alpha()));
    if (now == alpha) continue;
    end_run(row);
    alpha = now;
  }
  end_run(last_row_);
  first_row_ = 0;
  last_row_ = -1;
}

}  // namespace memwall::gui
