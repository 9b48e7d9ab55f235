#include "gui/view/window/welcome_page.h"

#include <QFileInfo>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

namespace memwall::gui {

WelcomePage::WelcomePage(QWidget* parent) : QWidget(parent), column_(new QVBoxLayout) {
  setObjectName("welcome");
  auto* title = title_ = new QLabel(this);
  title->setObjectName("title");
  title->setTextFormat(Qt::PlainText);
  set_opening({});
  QFont font = title->font();
  font.setPointSizeF(font.pointSizeF() * 1.6);
  title->setFont(font);
  auto* how = new QLabel(tr("Open a run file (.h5), or drop one here; drop two to compare them.\n"
                            "memwall run trace.mwt -o run.h5 makes one."),
                         this);
  auto* open = new QPushButton(tr("Open a run…"), this);
  open->setObjectName("open");
  open->setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
  connect(open, &QPushButton::clicked, this, &WelcomePage::open_wanted);
  for (QWidget* widget : std::initializer_list<QWidget*>{title, how, open}) column_->addWidget(widget);
  auto* middle = new QHBoxLayout;
  middle->addStretch();
  middle->addLayout(column_);
  middle->addStretch();
  auto* page = new QVBoxLayout(this);
  page->addStretch(1);
  page->addLayout(middle);
  page->addStretch(2);
}

void WelcomePage::set_opening(const QString& name) {
  title_->setText(name.isEmpty() ? tr("No run is open") : tr("Opening %1…").arg(name));
}

void WelcomePage::set_recent(const QStringList& paths) {
  delete recent_;
  recent_ = nullptr;
  if (paths.isEmpty()) return;
  recent_ = new QWidget(this);
  auto* list = new QVBoxLayout(recent_);
  list->setContentsMargins(0, 16, 0, 0);
  list->addWidget(new QLabel(tr("Recent"), recent_));
  for (const QString& path : paths) {
    auto* button = new QPushButton(QFileInfo(path).fileName(), recent_);
    button->setToolTip(path);
    button->setFlat(true);
    button->setStyleSheet("text-align: left");
    connect(button, &QPushButton::clicked, this, [this, path] { Q_EMIT file_wanted(path); });
    list->addWidget(button);
  }
  column_->addWidget(recent_);
}

}  // namespace memwall::gui
