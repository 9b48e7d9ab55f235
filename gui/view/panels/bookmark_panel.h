// The person's own marks: named, gone to and removed.
#pragma once

#include <QWidget>

#include "gui/view/workspace.h"

class QTableWidget;

namespace memwall::gui {

class BookmarkPanel : public QWidget {
  Q_OBJECT
 public:
  explicit BookmarkPanel(Workspace& workspace, QWidget* parent = nullptr);

 private:
  void show_marks();
  void rename(int row);
  void go_to(int row);
  void remove_chosen();

  Workspace& workspace_;
  QTableWidget* table_;
  bool filling_ = false;
};

}  // namespace memwall::gui
