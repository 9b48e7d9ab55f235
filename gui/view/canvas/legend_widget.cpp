#include "gui/view/canvas/legend_widget.h"

#include <QPainter>
#include <QResizeEvent>

#include <algorithm>
#include <cmath>

#include "gui/drawing/legend.h"
#include "gui/paint/figure_painter.h"
#include "gui/paint/qt_color.h"
#include "gui/view/canvas/canvas_widget.h"

namespace memwall::gui {

LegendWidget::LegendWidget(Workspace& workspace, CanvasWidget& canvas, QWidget* parent)
    : QWidget(parent), workspace_(workspace), canvas_(canvas) {
  setObjectName("legend");
  setAccessibleName(tr("Legend of the colours"));
  setToolTip(tr("What the colours of the picture mean. L hides it, and shows it again."));
  setAttribute(Qt::WA_OpaquePaintEvent);
  setFixedHeight(0);
  // Later: the canvas is being painted, and its size must not change meanwhile.
  connect(&canvas_, &CanvasWidget::words_changed, this, &LegendWidget::show_words, Qt::QueuedConnection);
  connect(&workspace_, &Workspace::runs_changed, this, &LegendWidget::start_over);
  connect(&workspace_, &Workspace::rows_changed, this, &LegendWidget::show_words);
  connect(&workspace_, &Workspace::theme_changed, this, qOverload<>(&QWidget::update));
}

void LegendWidget::start_over() {
  height_ = 0;
  show_words();
}

void LegendWidget::show_words() {
  const Figure figure = draw_legend(canvas_.words(), workspace_.theme(), width());
  height_ = std::max(height_, static_cast<int>(std::ceil(figure.height)));
  const bool shown = workspace_.state().show_legend && workspace_.has_run();
  setVisible(shown);
  setFixedHeight(shown ? height_ : 0);
  update();
}

void LegendWidget::resizeEvent(QResizeEvent* event) {
  if (event->oldSize().width() != event->size().width()) start_over();
}

void LegendWidget::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.fillRect(rect(), qt_color(workspace_.theme().background));
  paint_figure(draw_legend(canvas_.words(), workspace_.theme(), width()), painter, texts_);
}

}  // namespace memwall::gui
