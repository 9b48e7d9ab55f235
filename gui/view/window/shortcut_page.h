// The help page: every key and gesture, made from the table that the keys themselves are made of.
#pragma once

#include <QDialog>

#include <vector>

#include "gui/view/window/commands.h"

namespace memwall::gui {

class ShortcutPage : public QDialog {
  Q_OBJECT
 public:
  ShortcutPage(const std::vector<Command>& commands, QWidget* parent);
  static QString html_of(const std::vector<Command>& commands);

 protected:
  void keyPressEvent(QKeyEvent* event) override;  // `?` closes it again
};

}  // namespace memwall::gui
