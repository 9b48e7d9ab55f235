// Light, dark, or as the desktop has it: for the canvas and for all widgets.
#pragma once

#include <QPalette>
#include <QString>

#include "gui/drawing/theme.h"

namespace memwall::gui {

class ThemeChoice {
 public:
  ThemeChoice();  // remembers what the desktop has
  // "light", "dark", else the desktop's. Colours all widgets of the program; returns what the canvas takes.
  Theme apply(const QString& choice) const;

 private:
  QPalette system_;
};

}  // namespace memwall::gui
