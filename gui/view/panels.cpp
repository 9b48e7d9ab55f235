#include "gui/view/panels.h"

namespace memwall::gui {
std::vector<PanelKind> panel_kinds() { return {}; }
}  // namespace memwall::gui
