// Places of a run to go to: the peaks of memory, and the marks that a user set.
#pragma once

#include <QString>

#include "gui/view/workspace.h"

namespace memwall::gui {

// The next tier's peak: of the first tier that is shown, or where the cursor stands at one already, of the next.
void jump_to_peak(Workspace& workspace);
// Over the chosen range, else at the cursor.
void add_bookmark(Workspace& workspace);
// These do nothing where there is no such mark (any more). show: chooses its range, else puts the cursor there.
void show_bookmark(Workspace& workspace, std::size_t bookmark);
void name_bookmark(Workspace& workspace, std::size_t bookmark, const QString& name);
void remove_bookmark(Workspace& workspace, std::size_t bookmark);

}  // namespace memwall::gui
