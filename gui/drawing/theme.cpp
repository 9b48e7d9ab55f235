#include "gui/drawing/theme.h"

namespace memwall::gui {
Theme light_theme() { return {}; }
Theme dark_theme() { return {}; }
}  // namespace memwall::gui
