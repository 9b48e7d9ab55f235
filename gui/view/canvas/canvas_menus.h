// The menus of the canvas: of a lane's title, and of what lies under the pointer.
#pragma once

#include <QPoint>

#include <functional>

#include "gui/view/workspace.h"

class QMenu;
class QWidget;

namespace memwall::gui {

// Fills a menu for what was hit; nothing is added where there is nothing to do. `copy_details` puts the details of
// what is chosen on the clipboard.
void fill_title_menu(QMenu& menu, Workspace& workspace, std::size_t row);
void fill_span_menu(QMenu& menu, Workspace& workspace, const Hit& hit, const std::function<void()>& copy_details);

}  // namespace memwall::gui
