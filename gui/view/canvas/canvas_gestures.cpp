// CanvasWidget: buttons and wheel. What a button does is decided where it is pressed; a click is a
// press that did not move.
#include <QMouseEvent>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

#include "gui/view/bookmarks.h"
#include "gui/view/canvas/canvas_widget.h"
#include "gui/view/canvas/gestures.h"

namespace memwall::gui {
namespace {

constexpr double kEdge = 4;            // of a title's lower edge, and of an end of the chosen range
constexpr double kLowestRow = 8;       // to which a title can be dragged
constexpr double kNotch = 120;         // eighths of a degree, of one notch of a wheel
constexpr double kPanPerNotch = 0.1;   // of the width
constexpr double kRowsPerNotch = 60;   // logical pixels

// Pixels where a touchpad says them, else what a wheel's notches are worth.
double pixels_of(int pixels, int angle, double per_notch) { return pixels != 0 ? pixels : angle / kNotch * per_notch; }

}  // namespace

std::optional<RowList::RankRef> CanvasWidget::fold_at(QPointF at) const {
  if (at.y() < kRulerHeight) return std::nullopt;
  const RowList& rows = workspace_.state().rows;
  if (const auto line = rows.rank_line_at(at.y() - kRulerHeight + workspace_.state().scroll)) return line;
  const auto place = place_at(at.y());
  if (!place || !place->stands_for_rank || at.x() >= kTitleWidth) return std::nullopt;
  const CanvasRow& row = rows.rows()[place->row];
  return RowList::RankRef{row.run, *row.rank};
}

std::optional<RowList::Place> CanvasWidget::lower_edge_at(QPointF at) const {
  if (at.x() >= kTitleWidth) return std::nullopt;
  for (const double up : {0.0, -kEdge}) {  // the edge belongs to the row above it
    const auto place = place_at(at.y() + up);
    if (!place || place->stands_for_rank) continue;  // a folded rank has one height
    const double bottom = place->top + place->height + kRulerHeight - workspace_.state().scroll;
    if (std::abs(at.y() - bottom) <= kEdge) return place;
  }
  return std::nullopt;
}

std::optional<Time> CanvasWidget::other_end_of_range_at(QPointF at) const {
  const auto& range = workspace_.state().selection.range;
  if (!range || at.x() < kTitleWidth) return std::nullopt;
  const Viewport& viewport = workspace_.state().viewport;
  const double x = at.x() - kTitleWidth;
  if (std::abs(viewport.x(range->begin) - x) <= kEdge) return range->end;
  if (std::abs(viewport.x(range->end) - x) <= kEdge) return range->begin;
  return std::nullopt;
}

CanvasWidget::Drag CanvasWidget::drag_of(const QMouseEvent& event) const {
  const QPointF at = event.position();
  if (event.button() != Qt::LeftButton || space_) return Drag::pan;
  if (fold_at(at) && !lower_edge_at(at)) return Drag::fold;
  if (at.x() >= kTitleWidth) return Drag::range;
  if (lower_edge_at(at)) return Drag::height;
  return place_at(at.y()) ? Drag::title : Drag::none;
}

void CanvasWidget::mousePressEvent(QMouseEvent* event) {
  if (!workspace_.has_run() || drag_ != Drag::none) return;
  const QPointF at = event->position();
  button_ = event->button();
  pressed_ = last_ = at;
  moved_ = false;
  drag_ = drag_of(*event);
  if (drag_ == Drag::range) {
    anchor_ = other_end_of_range_at(at).value_or(workspace_.state().viewport.time(drawing_x(at.x())));
  }
  if (drag_ == Drag::pan) begin_gesture();
  const auto place = drag_ == Drag::height ? lower_edge_at(at) : place_at(at.y());
  if ((drag_ == Drag::height || drag_ == Drag::title) && place) {
    row_ = place->row;
    height_ = place->height;
  }
  show_cursor_for(at);
}

void CanvasWidget::mouseMoveEvent(QMouseEvent* event) {
  const QPointF at = event->position();
  if (drag_ == Drag::none) return hover(at);
  pointer_ = at;
  if (!moved_ && (at - pressed_).manhattanLength() < kDragThreshold) return;
  moved_ = true;
  switch (drag_) {
    case Drag::range:
      drag_range(at.x());
      break;
    case Drag::pan: {
      const QPointF by = at - last_;
      workspace_.change_viewport([&](Viewport& viewport) { viewport.pan(-by.x()); });
      workspace_.scroll_to(workspace_.state().scroll - by.y());
      break;
    }
    case Drag::height:
      workspace_.change_rows(
          [&](RowList& rows) { rows.row(row_).height = std::max(kLowestRow, height_ + at.y() - pressed_.y()); });
      break;
    case Drag::title:
      drag_title(at.y());
      break;
    case Drag::fold:
    case Drag::none:
      break;
  }
  last_ = at;
}

// Beyond the edges the picture follows.
void CanvasWidget::drag_range(double x) {
  const double beyond = x - kTitleWidth - drawing_x(x);
  if (beyond != 0) workspace_.change_viewport([&](Viewport& viewport) { viewport.pan(beyond / 4); });
  workspace_.set_range(range_between(anchor_, workspace_.state().viewport.time(drawing_x(x))));
}

void CanvasWidget::drag_title(double y) {
  const auto place = place_at(y);
  drop_y_.reset();
  if (place) {
    const double top = place->top + kRulerHeight - workspace_.state().scroll;
    drop_y_ = place->row > row_ ? top + place->height : top;
  }
  update();
}

void CanvasWidget::mouseReleaseEvent(QMouseEvent* event) {
  if (drag_ == Drag::none || event->button() != button_) return;
  const QPointF at = event->position();
  const Drag drag = std::exchange(drag_, Drag::none);
  const auto place = place_at(at.y());
  const bool dropped = drop_y_.has_value() && place;
  drop_y_.reset();
  if (drag == Drag::title && moved_ && dropped && place->row != row_) {
    workspace_.change_rows([&](RowList& rows) { rows.move(row_, place->row); });
  } else if (!moved_ && button_ == Qt::RightButton) {
    Q_EMIT menu_wanted(hit(at), mapToGlobal(at).toPoint());
  } else if (const auto rank = fold_at(at); rank && !moved_ && drag == Drag::fold) {
    workspace_.fold_rank(*rank, !workspace_.state().rows.folded().contains(*rank));
  } else if (!moved_ && drag == Drag::range) {
    click(at);
  }
  show_cursor_for(at);
  update();
}

void CanvasWidget::click(QPointF at) {
  const Hit found = hit(at);
  if (found.bookmark) return show_bookmark(workspace_, *found.bookmark);
  workspace_.set_range(std::nullopt);
  workspace_.set_cursor(workspace_.state().viewport.time(drawing_x(at.x())));
  if (at.y() < kRulerHeight) return;  // the ruler sets the cursor only
  workspace_.select(found.op);
  if (found.storage) workspace_.select_storage(found.storage);
}

void CanvasWidget::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || event->position().x() < kTitleWidth || space_) return mousePressEvent(event);
  const Hit found = hit(event->position());
  if (found.bookmark) return Q_EMIT bookmark_opened(*found.bookmark);
  if (!found.op && !found.storage) return mousePressEvent(event);
  workspace_.set_range(std::nullopt);
  if (found.op) {
    workspace_.select(found.op);
  } else {
    workspace_.select_storage(found.storage);
  }
  workspace_.show_chosen();
}

void CanvasWidget::wheelEvent(QWheelEvent* event) {
  if (!workspace_.has_run()) return;
  event->accept();
  const QPointF at = event->position();
  pointer_ = at;
  const bool shift = event->modifiers() & Qt::ShiftModifier, control = event->modifiers() & Qt::ControlModifier;
  const QPoint angle = event->angleDelta(), pixels = event->pixelDelta();
  const int turned = angle.y() != 0 ? angle.y() : angle.x();
  const bool nothing_to_scroll = workspace_.most_scroll() == 0 || at.y() < kRulerHeight;
  if (control || (nothing_to_scroll && !shift && angle.x() == 0)) {
    begin_gesture();
    return zoom(std::pow(kZoomPerNotch, turned / kNotch));
  }
  const double per_notch = kPanPerNotch * drawing_width();
  const double sideways = shift ? pixels_of(pixels.y() != 0 ? pixels.y() : pixels.x(), turned, per_notch)
                                : pixels_of(pixels.x(), angle.x(), per_notch);
  if (sideways != 0) {
    begin_gesture();
    workspace_.change_viewport([&](Viewport& viewport) { viewport.pan(-sideways); });
  }
  if (!shift && angle.y() != 0) {
    workspace_.scroll_to(workspace_.state().scroll - pixels_of(pixels.y(), angle.y(), kRowsPerNotch));
  }
}

}  // namespace memwall::gui
