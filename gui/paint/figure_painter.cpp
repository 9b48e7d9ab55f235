#include "gui/paint/figure_painter.h"

#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>

#include <cmath>

#include "traces/figure/palette.h"

namespace memwall::gui {
namespace {

QColor color_of(Color c) { return QColor(c.red, c.green, c.blue, c.opacity); }

class Painting {
 public:
  explicit Painting(QPainter& painter) : painter_(painter) {}

  void operator()(const Rectangle& r) {
    if (!(r.width > 0) || !(r.height > 0)) return;
    painter_.setPen(r.stroke.opacity ? QPen(color_of(r.stroke), 0.75, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin)
                                     : QPen(Qt::NoPen));
    painter_.setBrush(r.fill.opacity ? QBrush(color_of(r.fill)) : QBrush(Qt::NoBrush));
    if (r.radius > 0)
      painter_.drawRoundedRect(QRectF(r.x, r.y, r.width, r.height), r.radius, r.radius);
    else
      painter_.drawRect(QRectF(r.x, r.y, r.width, r.height));
  }
  void operator()(const Line& l) {
    if (l.stroke.opacity == 0 || !(l.width > 0)) return;
    QPen pen(color_of(l.stroke), l.width, Qt::SolidLine, Qt::FlatCap);
    if (l.dashed) pen.setDashPattern({5 / l.width, 3 / l.width});
    painter_.setPen(pen);
    painter_.drawLine(QPointF(l.from.x, l.from.y), QPointF(l.to.x, l.to.y));
  }
  void operator()(const Polyline& p) {
    QPolygonF points;
    for (const Point& point : p.points) points << QPointF(point.x, point.y);
    painter_.setPen(p.stroke.opacity && p.width > 0
                        ? QPen(color_of(p.stroke), p.width, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin)
                        : QPen(Qt::NoPen));
    painter_.setBrush(p.fill.opacity ? QBrush(color_of(p.fill)) : QBrush(Qt::NoBrush));
    if (p.fill.opacity)
      painter_.drawPolygon(points, Qt::WindingFill);
    else
      painter_.drawPolyline(points);
  }
  void operator()(const Text& t) {
    if (t.color.opacity == 0 || !(t.size > 0)) return;
    QFont font;
    font.setFamilies({"Helvetica", "Arial", "DejaVu Sans"});
    font.setStyleHint(QFont::SansSerif,
                      static_cast<QFont::StyleStrategy>(QFont::PreferAntialias | QFont::NoSubpixelAntialias));
    font.setHintingPreference(QFont::PreferNoHinting);
    font.setPixelSize(std::max(1, static_cast<int>(std::lround(t.size))));
    font.setBold(t.bold);
    painter_.setFont(font);
    painter_.setPen(color_of(t.color));
    const QString text = QString::fromStdString(t.text);
    const double width = t.anchor == Anchor::start ? 0 : QFontMetricsF(font).horizontalAdvance(text);
    painter_.save();
    painter_.translate(t.at.x, t.at.y);
    painter_.rotate(-t.angle);
    painter_.drawText(QPointF(t.anchor == Anchor::middle ? -width / 2 : -width, 0), text);
    painter_.restore();
  }
  void operator()(const GroupBegin&) {}
  void operator()(const GroupEnd&) {}

 private:
  QPainter& painter_;
};

}  // namespace

void paint_figure(const Figure& figure, QPainter& painter) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  Painting painting(painter);
  for (const Item& item : figure.items) std::visit(painting, item);
  painter.restore();
}

QImage image_of(const Figure& figure, double scale) {
  QImage image(static_cast<int>(std::ceil(figure.width * scale)), static_cast<int>(std::ceil(figure.height * scale)),
               QImage::Format_RGB32);
  image.fill(color_of(palette::kBackground));
  QPainter painter(&image);
  painter.scale(scale, scale);
  paint_figure(figure, painter);
  return image;
}
void write_png(const Figure&, const std::filesystem::path&, double) {}
void write_pdf(const Figure&, const std::filesystem::path&) {}

}  // namespace memwall::gui
