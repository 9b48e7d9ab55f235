#include "gui/view/canvas/canvas_widget.h"

#include <QEvent>
#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>

#include "gui/paint/figure_painter.h"
#include "gui/view/value_text.h"
#include "sim/error.h"

namespace memwall::gui {
namespace {

constexpr qint64 kOneGesture = 500;  // milliseconds

QColor color_of(const Color& color) { return {color.red, color.green, color.blue, color.opacity}; }

}  // namespace

CanvasWidget::CanvasWidget(Workspace& workspace, QWidget* parent) : QWidget(parent), workspace_(workspace) {
  setObjectName("canvas");
  setAccessibleName(tr("Timeline"));
  setAccessibleDescription(tr("Lanes of spans over time; every action has a key and a menu entry."));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setContextMenuPolicy(Qt::PreventContextMenu);  // the right button drags; its menu comes when it is released
  setAttribute(Qt::WA_OpaquePaintEvent);
  setMinimumSize(static_cast<int>(kTitleWidth) + 120, static_cast<int>(kRulerHeight) + 60);
  for (const auto signal :
       {&Workspace::runs_changed, &Workspace::loaded, &Workspace::selection_changed, &Workspace::viewport_changed,
        &Workspace::rows_changed, &Workspace::bookmarks_changed, &Workspace::theme_changed}) {
    connect(&workspace_, signal, this, &CanvasWidget::redraw);
  }
}

// ---------------------------------------------------------------- painting

void CanvasWidget::redraw() {
  stale_ = true;
  update();
}

void CanvasWidget::render() {
  const double ratio = devicePixelRatioF();
  const QSize pixels = (QSizeF(size()) * ratio).toSize();
  if (picture_.size() != pixels) picture_ = QPixmap(pixels);
  picture_.setDevicePixelRatio(ratio);
  picture_.fill(color_of(workspace_.theme().background));
  stale_ = false;
  if (!workspace_.has_run()) return;
  try {
    const CanvasFrame frame = draw_canvas(workspace_.state(), workspace_.theme(), width(), height());
    QPainter painter(&picture_);
    paint_figure(frame.figure, painter, texts_);
    if (!frame.problem.empty() && frame.problem != problem_) workspace_.report(QString::fromStdString(frame.problem));
    problem_ = frame.problem;
    if (words_ != frame.words) {
      words_ = frame.words;
      Q_EMIT words_changed();
    }
    workspace_.load_blocks(frame.missing);
  } catch (const InputError& error) {
    workspace_.report(QString::fromUtf8(error.what()));
  }
}

void CanvasWidget::paintEvent(QPaintEvent*) {
  if (stale_ || picture_.devicePixelRatio() != devicePixelRatioF()) render();
  QPainter painter(this);
  painter.drawPixmap(0, 0, picture_);
  if (drop_y_) {
    painter.setPen(QPen(color_of(workspace_.theme().selection), 3));
    painter.drawLine(QPointF(0, *drop_y_), QPointF(kTitleWidth, *drop_y_));
  }
}

QPixmap CanvasWidget::picture() {
  if (stale_) render();
  return picture_;
}

void CanvasWidget::resizeEvent(QResizeEvent*) {
  workspace_.resize(drawing_width(), height() - kRulerHeight);
  redraw();
}

// ---------------------------------------------------------------- where things are

double CanvasWidget::drawing_width() const { return std::max(1.0, width() - kTitleWidth); }

double CanvasWidget::drawing_x(double x) const { return std::clamp(x - kTitleWidth, 0.0, drawing_width()); }

std::optional<RowList::Place> CanvasWidget::place_at(double y) const {
  if (y < kRulerHeight) return std::nullopt;
  return workspace_.state().rows.at(y - kRulerHeight + workspace_.state().scroll);
}

Hit CanvasWidget::hit(QPointF at) {
  if (!workspace_.has_run()) return {};
  try {
    return hit_test(workspace_.state(), at.x(), at.y());
  } catch (const InputError& error) {
    workspace_.report(QString::fromUtf8(error.what()));
  }
  return {};
}

// ---------------------------------------------------------------- zooming and panning

void CanvasWidget::begin_gesture() {
  const bool new_one = !since_gesture_.isValid() || since_gesture_.elapsed() > kOneGesture;
  since_gesture_.start();
  if (new_one) workspace_.change_viewport([](Viewport& viewport) { viewport.remember(); });
}

void CanvasWidget::zoom(double factor) {
  const bool above = pointer_ && pointer_->x() >= kTitleWidth;
  const double at = above ? drawing_x(pointer_->x()) : drawing_width() / 2;
  workspace_.change_viewport([&](Viewport& viewport) { viewport.zoom(factor, at); });
}

void CanvasWidget::pan(double share) {
  workspace_.change_viewport([&](Viewport& viewport) { viewport.pan(share * viewport.width()); });
}

void CanvasWidget::hold_space(bool held) {
  space_ = held;
  if (pointer_) show_cursor_for(*pointer_);
}

// ---------------------------------------------------------------- hovering

void CanvasWidget::hover(QPointF at) {
  pointer_ = at;
  show_cursor_for(at);
  const Hit found = hit(at);
  QString text = QString::fromStdString(found.text);
  if (workspace_.has_run() && at.x() >= kTitleWidth) {
    const Time time = workspace_.state().viewport.time(drawing_x(at.x()));
    Q_EMIT pointed_at(instant_text(time, workspace_.state().whole().end));
  } else {
    Q_EMIT pointed_at({});
  }
  if (text == pointer_text_) return;
  pointer_text_ = text;
  if (text.isEmpty()) {
    QToolTip::hideText();
  } else {
    QToolTip::showText(mapToGlobal(at.toPoint() + QPoint(12, 16)), text.toHtmlEscaped().replace('\n', "<br>"), this);
  }
}

void CanvasWidget::leaveEvent(QEvent*) {
  pointer_.reset();
  pointer_text_.clear();
  QToolTip::hideText();
  Q_EMIT pointed_at({});
}

bool CanvasWidget::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  pointer_text_.clear();  // the toolkit asks after a rest of the pointer: the text comes again
  hover(static_cast<QHelpEvent*>(event)->pos());
  return true;
}

void CanvasWidget::show_cursor_for(QPointF at) {
  if (drag_ == Drag::pan || space_) return setCursor(drag_ == Drag::pan ? Qt::ClosedHandCursor : Qt::OpenHandCursor);
  if (lower_edge_at(at)) return setCursor(Qt::SizeVerCursor);
  if (fold_at(at)) return setCursor(Qt::PointingHandCursor);
  if (other_end_of_range_at(at)) return setCursor(Qt::SizeHorCursor);
  unsetCursor();
}

}  // namespace memwall::gui
