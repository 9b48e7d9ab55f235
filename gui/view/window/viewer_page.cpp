#include "gui/view/window/viewer_page.h"

#include <QGridLayout>
#include <QLineEdit>
#include <QPainter>
#include <QScrollBar>

#include <cmath>

#include "gui/view/canvas/canvas_widget.h"
#include "gui/view/canvas/legend_widget.h"
#include "gui/view/canvas/overview_widget.h"

namespace memwall::gui {

ViewerPage::ViewerPage(Workspace& workspace, QWidget* parent)
    : QWidget(parent),
      workspace_(workspace),
      canvas_(new CanvasWidget(workspace, this)),
      overview_(new OverviewWidget(workspace, this)),
      legend_(new LegendWidget(workspace, *canvas_, this)),
      filter_(new QLineEdit(this)),
      bar_(new QScrollBar(Qt::Vertical, this)) {
  filter_->setObjectName("filter");
  filter_->setAccessibleName(tr("Filter of lanes"));
  filter_->setPlaceholderText(tr("Filter lanes"));
  filter_->setClearButtonEnabled(true);
  bar_->setAccessibleName(tr("Scrolls the lanes"));
  auto* corner = new QWidget(this);
  corner->setFixedWidth(static_cast<int>(kTitleWidth));
  auto* corner_layout = new QVBoxLayout(corner);
  corner_layout->setContentsMargins(6, 4, 6, 4);
  corner_layout->addStretch();
  corner_layout->addWidget(filter_);
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setSpacing(0);
  grid->addWidget(corner, 0, 0);
  grid->addWidget(overview_, 0, 1);
  grid->addWidget(canvas_, 1, 0, 1, 2);
  grid->addWidget(bar_, 1, 2);
  grid->addWidget(legend_, 2, 0, 1, 3);
  grid->setColumnStretch(1, 1);
  grid->setRowStretch(1, 1);
  connect(filter_, &QLineEdit::textChanged, this, [this](const QString& text) {
    if (text.toStdString() == workspace_.state().rows.filter()) return;
    workspace_.change_rows([&](RowList& rows) { rows.filter(text.toStdString()); });
  });
  connect(filter_, &QLineEdit::returnPressed, canvas_, qOverload<>(&QWidget::setFocus));
  connect(bar_, &QScrollBar::valueChanged, this, [this](int value) {
    if (std::lround(workspace_.state().scroll) != value) workspace_.scroll_to(value);
  });
  for (const auto signal : {&Workspace::runs_changed, &Workspace::rows_changed, &Workspace::resized}) {
    connect(&workspace_, signal, this, &ViewerPage::show_rows);
  }
}

QPixmap ViewerPage::picture() {
  const QPixmap above = canvas_->picture();
  if (!legend_->isVisible() || legend_->height() == 0) return above;
  const QPixmap below = legend_->grab(QRect(0, 0, canvas_->width(), legend_->height()));
  QPixmap both(above.width(), above.height() + below.height());
  both.setDevicePixelRatio(above.devicePixelRatio());
  QPainter painter(&both);
  painter.drawPixmap(0, 0, above);
  painter.drawPixmap(0, canvas_->height(), below);
  return both;
}

void ViewerPage::show_rows() {
  const int most = static_cast<int>(std::ceil(workspace_.most_scroll()));
  const int page = std::max(1, canvas_->height() - static_cast<int>(kRulerHeight));
  bar_->setRange(0, most);
  bar_->setPageStep(page);
  bar_->setSingleStep(24);
  bar_->setValue(static_cast<int>(std::lround(workspace_.state().scroll)));
  const QString filter = QString::fromStdString(workspace_.state().rows.filter());
  if (filter_->text() != filter) filter_->setText(filter);
}

}  // namespace memwall::gui
