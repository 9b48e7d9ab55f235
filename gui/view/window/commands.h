// What the keys do, in one table: menus, shortcuts and the help page are made of it.
#pragma once

#include <QStringList>

#include <functional>
#include <vector>

#include "gui/view/workspace.h"

namespace memwall::gui {

class CanvasWidget;

struct Command {
  QString menu;  // "&File", "&View", "&Go", "&Compare", "&Help"
  QString text;  // of the menu entry; "-" alone is a line
  QStringList keys;
  QString help;                   // a sentence for the help page
  std::function<void()> act;      // none: the keys are held, and NavigationKeys sees to them
  std::function<void()> by_menu;  // of a held key: what the menu entry does
};

// Those that concern the workspace alone.
std::vector<Command> workspace_commands(Workspace& workspace);
// Zooming and panning by keys that are held: see NavigationKeys.
std::vector<Command> navigation_commands(Workspace& workspace, CanvasWidget& canvas);

// What the mouse does, for the help page.
struct Gesture {
  QString how, what;
};
std::vector<Gesture> gestures();

}  // namespace memwall::gui
