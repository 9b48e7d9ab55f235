#include "gui/paint/figure_painter.h"

#include <fmt/format.h>
#include <QPaintEngine>
#include <QPainter>
#include <QPolygonF>

#include <cmath>
#include <optional>

#include "gui/paint/pixel_fill.h"
#include "gui/paint/qt_color.h"
#include "sim/error.h"
#include "traces/figure/palette.h"

namespace memwall::gui {
namespace {

constexpr double kBorder = 0.75;  // of a rectangle, points

class Painting {
 public:
  Painting(QPainter& painter, TextCache& texts) : painter_(painter), texts_(texts) {
    vector_ = painter.paintEngine() != nullptr && painter.paintEngine()->type() != QPaintEngine::Raster;
    if (PixelFill::suits(painter)) pixels_.emplace(painter);
  }

  void operator()(const Rectangle& r) {
    if (!(r.width > 0) || !(r.height > 0)) return;
    if (pixels_ && r.stroke.opacity == 0 && !(r.radius > 0))
      return fill(r.x, r.y, r.x + r.width, r.y + r.height, r.fill);
    smooth(true);
    set_pen(r.stroke, kBorder, Qt::MiterJoin);
    painter_.setBrush(brush(r.fill));
    const QRectF place(r.x, r.y, r.width, r.height);
    if (r.radius > 0)
      painter_.drawRoundedRect(place, r.radius, r.radius);
    else
      painter_.drawRect(place);
  }

  void operator()(const Line& l) {
    if (l.stroke.opacity == 0 || !(l.width > 0)) return;
    const double half = l.width / 2;
    if (pixels_ && !l.dashed && l.from.x == l.to.x)
      return fill(l.from.x - half, std::min(l.from.y, l.to.y), l.from.x + half, std::max(l.from.y, l.to.y), l.stroke);
    if (pixels_ && !l.dashed && l.from.y == l.to.y)
      return fill(std::min(l.from.x, l.to.x), l.from.y - half, std::max(l.from.x, l.to.x), l.from.y + half, l.stroke);
    smooth(true);
    QPen pen(qt_color(l.stroke), l.width, Qt::SolidLine, Qt::FlatCap);
    if (l.dashed) pen.setDashPattern({5 / l.width, 3 / l.width});
    painter_.setPen(pen);
    painter_.drawLine(QPointF(l.from.x, l.from.y), QPointF(l.to.x, l.to.y));
  }

  void operator()(const Polyline& p) {
    if (p.points.empty()) return;
    const bool filled = p.fill.opacity != 0, stroked = p.stroke.opacity != 0 && p.width > 0;
    bool done = false;
    if (filled && pixels_) {
      smooth(false);
      done = pixels_->step_area(p.points, p.fill);
    }
    if (!stroked && (done || !filled)) return;
    points_.clear();
    for (const Point& point : p.points) points_.emplace_back(point.x, point.y);
    smooth(true);
    set_pen(stroked ? p.stroke : kNoColor, p.width, Qt::RoundJoin);
    painter_.setBrush(done ? QBrush(Qt::NoBrush) : brush(p.fill));
    if (filled)
      painter_.drawPolygon(points_, Qt::WindingFill);
    else
      painter_.drawPolyline(points_);
  }

  void operator()(const Text& t) {
    if (vector_) return paint_as_text(t);
    texts_.paint(t, painter_);
  }
  void operator()(const GroupBegin&) {}
  void operator()(const GroupEnd&) {}

 private:
  static QBrush brush(Color color) { return color.opacity ? QBrush(qt_color(color)) : QBrush(Qt::NoBrush); }

  void fill(double x0, double y0, double x1, double y1, Color color) {
    if (color.opacity == 0) return;
    smooth(false);
    pixels_->rectangle(x0, y0, x1, y1, color);
  }

  // Antialiasing by Qt; without it, rectangles fill whole pixels.
  void smooth(bool on) {
    if (smooth_ == on) return;
    painter_.setRenderHint(QPainter::Antialiasing, on);
    smooth_ = on;
  }

  void set_pen(Color color, double width, Qt::PenJoinStyle join) {
    if (color.opacity == 0)
      painter_.setPen(Qt::NoPen);
    else
      painter_.setPen(QPen(qt_color(color), width, Qt::SolidLine, Qt::FlatCap, join));
  }

  // Letters for a device that keeps them as such: a PDF can be searched, and its text copied.
  void paint_as_text(const Text& t) {
    if (t.color.opacity == 0 || !(t.size > 0)) return;
    constexpr int kPixels = 100;  // metrics of a large size: exact ones
    const QFont font = figure_font(kPixels, t.bold);
    const QString text = painted_text(t.text);
    const double width = QFontMetricsF(font, painter_.device()).horizontalAdvance(text);
    const double share = t.anchor == Anchor::start ? 0 : t.anchor == Anchor::middle ? 0.5 : 1;
    painter_.save();
    painter_.setFont(font);
    painter_.setPen(qt_color(t.color));
    painter_.translate(t.at.x, t.at.y);
    painter_.rotate(-t.angle);
    painter_.scale(t.size / kPixels, t.size / kPixels);
    painter_.drawText(QPointF(-share * width, 0), text);
    painter_.restore();
  }

  QPainter& painter_;
  TextCache& texts_;
  std::optional<PixelFill> pixels_;
  QPolygonF points_;
  bool vector_ = false, smooth_ = true;
};

}  // namespace

void paint_figure(const Figure& figure, QPainter& painter) {
  TextCache texts;
  paint_figure(figure, painter, texts);
}

void paint_figure(const Figure& figure, QPainter& painter, TextCache& texts) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setRenderHint(QPainter::TextAntialiasing);
  Painting painting(painter, texts);
  for (const Item& item : figure.items) std::visit(painting, item);
  painter.restore();
}

QImage image_of(const Figure& figure, double scale) {
  constexpr double kMostPixels = 32'000, kMostInAll = 256e6;
  const double width = std::ceil(figure.width * scale - 1e-6), height = std::ceil(figure.height * scale - 1e-6);
  if (!(width >= 1 && height >= 1 && width <= kMostPixels && height <= kMostPixels && width * height <= kMostInAll))
    throw UsageError(
        fmt::format("a figure of {:.0f} x {:.0f} points at {} pixels per point is an image of {:.0f} x "
                    "{:.0f} pixels; expected 1 to {:.0f} each way and at most {:.0f} million in all.",
                    figure.width, figure.height, scale, width, height, kMostPixels, kMostInAll / 1e6));
  QImage image(static_cast<int>(width), static_cast<int>(height), QImage::Format_RGB32);
  if (image.isNull()) throw UsageError("memory of this computer does not suffice for the image.");
  // As wide on paper as the SVG is: a point is 1/72 inch.
  const int pixels_per_meter = static_cast<int>(std::lround(scale * 72 / 0.0254));
  image.setDotsPerMeterX(pixels_per_meter);
  image.setDotsPerMeterY(pixels_per_meter);
  image.fill(qt_color(palette::kBackground));
  QPainter painter(&image);
  painter.scale(scale, scale);
  paint_figure(figure, painter);
  return image;
}

}  // namespace memwall::gui
