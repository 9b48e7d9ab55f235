// The canvas: paints the rows, and turns mouse and wheel into looking and choosing.
//
// The picture is kept until the workspace says that something changed; hovering draws nothing anew.
// x and y are logical pixels of the widget; the drawing area begins right of the titles and below the
// ruler (gui/drawing/canvas_drawing.h).
#pragma once

#include <QElapsedTimer>
#include <QPixmap>
#include <QWidget>

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "gui/paint/text_cache.h"
#include "gui/view/workspace.h"

namespace memwall::gui {

class CanvasWidget : public QWidget {
  Q_OBJECT
 public:
  explicit CanvasWidget(Workspace& workspace, QWidget* parent = nullptr);

  // factor 2 shows half as much; at the pointer where it is above the drawing area, else in the middle.
  void zoom(double factor);
  void pan(double share);  // of the width; positive: later times come into view
  // Called when a gesture of zooming or panning may begin: what was visible before it can be gone back to. Gestures
  // within half a second of each other are one.
  void begin_gesture();
  void hold_space(bool held);  // with it, the left button pans
  QPixmap picture();           // of what is shown, at the screen's resolution
  // Whose colours are in the picture that was painted last.
  const std::set<std::string_view>& words() const { return words_; }

  QSize sizeHint() const override { return {1000, 600}; }

 Q_SIGNALS:
  void words_changed();                  // told while it is painted
  void pointed_at(const QString& text);  // what is under the pointer, for the status bar; "" outside
  void menu_wanted(const memwall::gui::Hit& hit, const QPoint& where);
  void bookmark_opened(std::size_t bookmark);  // its flag was clicked twice

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void leaveEvent(QEvent* event) override;
  bool event(QEvent* event) override;  // tells the pointer's text where the toolkit asks for it

 private:
  enum class Drag : std::uint8_t { none, range, pan, title, height, fold };

  void redraw();
  void render();
  Hit hit(QPointF at);
  double drawing_x(double x) const;  // within the drawing area
  double drawing_width() const;
  std::optional<RowList::Place> place_at(double y) const;
  std::optional<RowList::RankRef> fold_at(QPointF at) const;      // what a click there folds or unfolds
  std::optional<RowList::Place> lower_edge_at(QPointF at) const;  // of a title, to drag
  std::optional<Time> other_end_of_range_at(QPointF at) const;  // where an end of the chosen range is under the pointer
  Drag drag_of(const QMouseEvent& event) const;
  void drag_range(double x);
  void drag_title(double y);
  void click(QPointF at);
  void show_cursor_for(QPointF at);
  void hover(QPointF at);

  Workspace& workspace_;
  QPixmap picture_;
  TextCache texts_;
  std::set<std::string_view> words_;
  std::string problem_;  // of the last frame that could not read all it shows: told once
  bool stale_ = true;
  QElapsedTimer since_gesture_;
  std::optional<QPointF> pointer_;  // while it is above the canvas
  QString pointer_text_;
  // The drag that goes on.
  Drag drag_ = Drag::none;
  Qt::MouseButton button_ = Qt::NoButton;
  QPointF pressed_, last_;
  bool moved_ = false;  // beyond what a hand trembles
  bool space_ = false;
  Time anchor_{};                 // the end of the range that stays
  std::size_t row_ = 0;           // whose title is dragged
  double height_ = 0;             // that it had
  std::optional<double> drop_y_;  // where the title would go
};

}  // namespace memwall::gui
