// The middle of the window: overview above the canvas, the filter above its titles, a scroll bar.
#pragma once

#include <QPixmap>
#include <QWidget>

class QLineEdit;
class QScrollBar;

namespace memwall::gui {

class CanvasWidget;
class LegendWidget;
class OverviewWidget;
class Workspace;

class ViewerPage : public QWidget {
  Q_OBJECT
 public:
  explicit ViewerPage(Workspace& workspace, QWidget* parent = nullptr);
  CanvasWidget& canvas() { return *canvas_; }
  OverviewWidget& overview() { return *overview_; }
  LegendWidget& legend() { return *legend_; }
  QLineEdit& filter() { return *filter_; }
  QPixmap picture();  // of the canvas, and of the legend below it where that is shown

 private:
  void show_rows();  // as the workspace has them

  Workspace& workspace_;
  CanvasWidget* canvas_;
  OverviewWidget* overview_;
  LegendWidget* legend_;
  QLineEdit* filter_;
  QScrollBar* bar_;
};

}  // namespace memwall::gui
