// A workspace with small runs in it and a panel on a screen that is not there, for tests of panels.
#pragma once

#include <QCoreApplication>
#include <QWidget>

#include <memory>

#include "gui/view/panels/panels.h"
#include "gui/view/workspace.h"

namespace memwall::gui {

// Two steps of a small GPT, long enough for every lane to have work. `slower`: kernels take twice as long.
OpenRun small_open_run(const std::string& name, bool slower = false);

class PanelFixture {
 public:
  // Opens `runs` runs of one trace, 1 or 2, the second slower, and loads all there is to load.
  explicit PanelFixture(std::size_t runs = 1);

  // The panel, shown at a size, with what it works out done.
  template <class Make>
  QWidget& show(Make make, QSize size = {420, 400}) {
    panel_.reset(make(workspace, nullptr));
    panel_->resize(size);
    panel_->show();
    settle();
    return *panel_;
  }
  template <class Widget = QWidget>
  Widget& part(const char* name) {
    Widget* const found = panel_->findChild<Widget*>(QString::fromLatin1(name));
    if (found == nullptr) throw std::runtime_error(std::string("no part named ") + name);
    return *found;
  }
  // Until nothing is under way and nothing waits to be shown.
  void settle();

  Workspace workspace;

 private:
  std::unique_ptr<QWidget> panel_;
};

}  // namespace memwall::gui
