#include "gui/view/panels.h"

#include <QWidget>

namespace memwall::gui {
std::vector<PanelKind> panel_kinds() { return {}; }
}  // namespace memwall::gui
