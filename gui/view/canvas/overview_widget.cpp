#include "gui/view/canvas/overview_widget.h"

#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

#include "gui/paint/figure_painter.h"
#include "gui/paint/qt_color.h"
#include "gui/view/canvas/gestures.h"
#include "sim/error.h"

namespace memwall::gui {
namespace {

constexpr double kNarrowest = 12;  // a window narrower than this cannot be grasped: pressing begins a new one

// As Viewport::show(), but not remembered: a drag is one step back, and it began with remember().
void look_at(Viewport& viewport, TimeRange range) {
  const auto length = [](TimeRange of) { return std::max(1.0, static_cast<double>(of.length().count())); };
  viewport.zoom(length(viewport.visible()) / length(range), 0);
  viewport.pan(viewport.x(range.begin));
}

}  // namespace

OverviewWidget::OverviewWidget(Workspace& workspace, QWidget* parent) : QWidget(parent), workspace_(workspace) {
  setObjectName("overview");
  setAccessibleName(tr("Overview of the whole run"));
  setToolTip(tr("Drag the window to move it; drag elsewhere to choose what is visible; the wheel zooms."));
  setAttribute(Qt::WA_OpaquePaintEvent);
  setFixedHeight(static_cast<int>(kOverviewHeight));
  for (const auto signal :
       {&Workspace::runs_changed, &Workspace::loaded, &Workspace::selection_changed, &Workspace::viewport_changed,
        &Workspace::rows_changed, &Workspace::bookmarks_changed, &Workspace::theme_changed}) {
    connect(&workspace_, signal, this, &OverviewWidget::redraw);
  }
}

void OverviewWidget::redraw() {
  stale_ = true;
  update();
}

void OverviewWidget::render() {
  const double ratio = devicePixelRatioF();
  picture_ = QPixmap((QSizeF(size()) * ratio).toSize());
  picture_.setDevicePixelRatio(ratio);
  picture_.fill(qt_color(workspace_.theme().background));
  stale_ = false;
  if (!workspace_.has_run()) return;
  try {
    QPainter painter(&picture_);
    paint_figure(draw_overview(workspace_.state(), workspace_.theme(), width(), height()), painter, texts_);
  } catch (const InputError& error) {
    workspace_.report(QString::fromUtf8(error.what()));
  }
}

void OverviewWidget::paintEvent(QPaintEvent*) {
  if (stale_ || picture_.size() != (QSizeF(size()) * devicePixelRatioF()).toSize()) render();
  QPainter(this).drawPixmap(0, 0, picture_);
}

Time OverviewWidget::time(double x) const {
  const TimeRange whole = workspace_.state().whole();
  const double share = std::clamp(x / std::max(1, width()), 0.0, 1.0);
  return whole.begin + Time(std::llround(share * static_cast<double>(whole.length().count())));
}

double OverviewWidget::x(Time time) const {
  const TimeRange whole = workspace_.state().whole();
  const double length = std::max(1.0, static_cast<double>(whole.length().count()));
  return static_cast<double>((time - whole.begin).count()) / length * width();
}

// Where everything is visible there is nothing to move: a drag chooses.
bool OverviewWidget::in_window(double at) const {
  const TimeRange visible = workspace_.state().viewport.visible();
  const double left = x(visible.begin), right = x(visible.end);
  return right - left >= kNarrowest && right - left < width() - 1 && left <= at && at <= right;
}

void OverviewWidget::mousePressEvent(QMouseEvent* event) {
  if (!workspace_.has_run() || event->button() != Qt::LeftButton) return;
  pressed_ = event->position().x();
  before_ = workspace_.state().viewport.visible();
  moved_ = false;
  drag_ = in_window(pressed_) ? Drag::window : Drag::range;
  workspace_.change_viewport([](Viewport& viewport) { viewport.remember(); });
}

void OverviewWidget::mouseMoveEvent(QMouseEvent* event) {
  const double at = event->position().x();
  if (drag_ == Drag::none) return setCursor(in_window(at) ? Qt::OpenHandCursor : Qt::CrossCursor);
  if (!moved_ && std::abs(at - pressed_) < kDragThreshold) return;
  moved_ = true;
  if (drag_ == Drag::range) {
    return workspace_.change_viewport(
        [&](Viewport& viewport) { look_at(viewport, range_between(time(pressed_), time(at))); });
  }
  const Viewport& viewport = workspace_.state().viewport;
  const double target = x(before_.begin) + at - pressed_;
  const double pixels = (target - x(viewport.visible().begin)) / std::max(1, width()) *
                        static_cast<double>(workspace_.state().whole().length().count()) /
                        viewport.picoseconds_per_pixel();
  workspace_.change_viewport([&](Viewport& v) { v.pan(pixels); });
}

void OverviewWidget::mouseReleaseEvent(QMouseEvent* event) {
  if (drag_ == Drag::none || event->button() != Qt::LeftButton) return;
  drag_ = Drag::none;
  if (moved_) return;
  const double at = workspace_.state().viewport.x(time(pressed_));
  workspace_.change_viewport([&](Viewport& viewport) { viewport.pan(at - viewport.width() / 2); });
}

void OverviewWidget::wheelEvent(QWheelEvent* event) {
  if (!workspace_.has_run()) return;
  event->accept();
  const int turned = event->angleDelta().y() != 0 ? event->angleDelta().y() : event->angleDelta().x();
  const Time at = time(event->position().x());
  workspace_.change_viewport([&](Viewport& viewport) {
    viewport.remember();
    viewport.zoom(std::pow(kZoomPerNotch, turned / 120.0), std::clamp(viewport.x(at), 0.0, viewport.width()));
  });
}

}  // namespace memwall::gui
