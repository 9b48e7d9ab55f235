// Paints figures with Qt: on the screen, into PNG and PDF.
//
// The same shapes as traces/figure/svg.h writes. One point of a figure is one logical pixel.
#pragma once

#include <QImage>

#include <filesystem>

#include "gui/paint/text_cache.h"
#include "traces/figure/figure.h"

class QPainter;

namespace memwall::gui {

// At the painter's origin. Groups are not drawn: their titles are for hovering. Nor is the background that SVG has.
// The painter's state is as before afterwards. For pictures that are painted again and again, keep the texts: with
// a cache that outlives the frame a text costs a third.
void paint_figure(const Figure& figure, QPainter& painter);
void paint_figure(const Figure& figure, QPainter& painter, TextCache& texts);

// On white, as the SVG is. `scale` pixels per point. REQUIRES: scale > 0, and at least a pixel each way.
// Throws UsageError where the image would be larger than 32,000 pixels each way, or 256 million.
QImage image_of(const Figure& figure, double scale = 2);

// Written beside the target and renamed. Throws UsageError. Without times and program names: equal figures give equal
// bytes on one Qt and font set. Texts of a PDF are text, with the letters of their font inside.
void write_png(const Figure& figure, const std::filesystem::path& path, double scale = 2);
void write_pdf(const Figure& figure, const std::filesystem::path& path);

}  // namespace memwall::gui
