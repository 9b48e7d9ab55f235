#include "gui/paint/figure_painter.h"

#include <QPainter>

namespace memwall::gui {

void paint_figure(const Figure&, QPainter&) {}
QImage image_of(const Figure& figure, double scale) {
  return QImage(static_cast<int>(figure.width * scale), static_cast<int>(figure.height * scale), QImage::Format_RGB32);
}
void write_png(const Figure&, const std::filesystem::path&, double) {}
void write_pdf(const Figure&, const std::filesystem::path&) {}

}  // namespace memwall::gui
