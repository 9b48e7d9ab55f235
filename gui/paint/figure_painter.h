// Paints figures with Qt: on the screen, into PNG and PDF.
//
// The same shapes as traces/figure/svg.h writes. One point of a figure is one logical pixel.
#pragma once

#include <QImage>

#include <filesystem>

#include "traces/figure/figure.h"

class QPainter;

namespace memwall::gui {

// At the painter's origin. Groups are not drawn: their titles are for hovering.
void paint_figure(const Figure& figure, QPainter& painter);

// `scale` pixels per point. REQUIRES: scale > 0.
QImage image_of(const Figure& figure, double scale = 2);

// Written beside the target and renamed. Throws UsageError. PNG without times and program names: equal figures give
// equal bytes on one Qt and font set.
void write_png(const Figure& figure, const std::filesystem::path& path, double scale = 2);
void write_pdf(const Figure& figure, const std::filesystem::path& path);

}  // namespace memwall::gui
