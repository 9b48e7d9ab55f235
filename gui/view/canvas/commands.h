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

// The next tier's peak: of the first tier that is shown, or where the cursor stands at one already, of the next.
void jump_to_peak(Workspace& workspace);
// Over the chosen range, else at the cursor.
void add_bookmark(Workspace& workspace);
// These do nothing where there is no such mark (any more). show: chooses its range, else puts the cursor there.
void show_bookmark(Workspace& workspace, std::size_t bookmark);
void name_bookmark(Workspace& workspace, std::size_t bookmark, const QString& name);
void remove_bookmark(Workspace& workspace, std::size_t bookmark);

}  // namespace memwall::gui
