// Fills rectangles by the share of each pixel that they cover, with as few calls as may be.
//
// What Qt's general rasterizer gives with antialiasing, several times as fast: a timeline is rectangles,
// and a frame has tens of thousands of them. Internal to gui/paint.
#pragma once

#include <QColor>
#include <QTransform>

#include <vector>

#include "traces/figure/figure.h"

class QPainter;

namespace memwall::gui {

// REQUIRES: suits(painter); the painter's transform and clip stay as they are.
class PixelFill {
 public:
  explicit PixelFill(QPainter& painter);
  // Whether the painter paints pixels, and neither turns nor mirrors.
  static bool suits(const QPainter& painter);

  // In the figure's coordinates; nothing where x1 <= x0 or y1 <= y0.
  void rectangle(double x0, double y0, double x1, double y1, Color color);

  // An area between two step functions of x, as `points` run around it: to the right along one, back along the other.
  // False, and nothing is painted, if it is not such an area.
  bool step_area(const std::vector<Point>& points, Color color);

 private:
  // One line of a step function: `y` from `x` on.
  struct Step {
    double x = 0, y = 0;
  };
  void cells(double x0, double x1, double y0, double y1, QColor color);  // in pixels
  void cell(double x0, double x1, double y0, double y1, QColor color, double share);
  bool split(const std::vector<Point>& points);
  void piece(double x0, double x1, double top, double bottom, QColor color);
  void add_to_column(double share, double top, double bottom);
  void flush_column(QColor color);

  QPainter& painter_;
  double scale_x_, scale_y_, shift_x_, shift_y_;  // from the figure's coordinates to pixels
  double right_, bottom_;                         // of what can be painted, pixels

  std::vector<Step> there_, back_;  // of the area at hand, pixels
  // The column of pixels that several steps cover in part: changes of its coverage by row.
  std::vector<float> changes_;
  long column_ = 0;
  int first_row_ = 0, last_row_ = -1;
};

}  // namespace memwall::gui
