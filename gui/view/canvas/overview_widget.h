// The whole run in a strip; what is visible stands out in it and can be dragged.
#pragma once

#include <QPixmap>
#include <QWidget>

#include "gui/paint/text_cache.h"
#include "gui/view/workspace.h"

namespace memwall::gui {

class OverviewWidget : public QWidget {
  Q_OBJECT
 public:
  explicit OverviewWidget(Workspace& workspace, QWidget* parent = nullptr);
  QSize sizeHint() const override { return {1000, static_cast<int>(kOverviewHeight)}; }

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;

 private:
  enum class Drag : std::uint8_t { none, window, range };

  void redraw();
  void render();
  Time time(double x) const;
  double x(Time time) const;
  bool in_window(double x) const;

  Workspace& workspace_;
  QPixmap picture_;
  TextCache texts_;
  bool stale_ = true;
  Drag drag_ = Drag::none;
  double pressed_ = 0;
  TimeRange before_{};  // visible when the drag began
  bool moved_ = false;
};

}  // namespace memwall::gui
