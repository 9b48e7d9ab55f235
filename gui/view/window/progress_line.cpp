#include "gui/view/window/progress_line.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>

#include "gui/view/background.h"

namespace memwall::gui {

ProgressLine::ProgressLine(Background& background, QWidget* parent)
    : QWidget(parent), background_(background), what_(new QLabel(this)), bar_(new QProgressBar(this)) {
  setObjectName("progress");
  auto* cancel = new QPushButton(tr("Cancel"), this);
  cancel->setObjectName("cancel");
  cancel->setFocusPolicy(Qt::TabFocus);
  bar_->setRange(0, 1000);
  bar_->setFixedWidth(160);
  bar_->setAccessibleName(tr("Progress"));
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  for (QWidget* widget : std::initializer_list<QWidget*>{what_, bar_, cancel}) layout->addWidget(widget);
  patience_.setSingleShot(true);
  patience_.setInterval(kPatience);
  hide();
  connect(&patience_, &QTimer::timeout, this, &QWidget::show);
  connect(cancel, &QPushButton::clicked, this, [this] { background_.cancel(); });
  connect(&background_, &Background::started, this, &ProgressLine::begin);
  connect(&background_, &Background::progressed, this, [this](double done) {
    bar_->setRange(0, 1000);
    bar_->setValue(static_cast<int>(done * 1000));
  });
  connect(&background_, &Background::finished, this, &ProgressLine::end);
}

void ProgressLine::begin(const QString& what) {
  what_->setText(what);
  bar_->setRange(0, 0);  // until it is known how much there is
  if (!isVisible() && !patience_.isActive()) patience_.start();
}

void ProgressLine::end() {
  patience_.stop();
  hide();
}

}  // namespace memwall::gui
