// The strip below the canvas that says what its colours mean; only of those that are in the picture.
#pragma once

#include <QWidget>

#include "gui/paint/text_cache.h"
#include "gui/view/workspace.h"

namespace memwall::gui {

class CanvasWidget;

class LegendWidget : public QWidget {
  Q_OBJECT
 public:
  // Neither is owned.
  LegendWidget(Workspace& workspace, CanvasWidget& canvas, QWidget* parent = nullptr);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void show_words();  // as the canvas has them
  void start_over();

  Workspace& workspace_;
  CanvasWidget& canvas_;
  TextCache texts_;
  // It grows where more is to be explained, and stays as high: a canvas that becomes higher may show more, and less
  // again.
  int height_ = 0;
};

}  // namespace memwall::gui
