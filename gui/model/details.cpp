#include "gui/model/details.h"

namespace memwall::gui {
std::vector<DetailSection> details_of(const OpenRun&, OpRef) { return {}; }
std::vector<DetailSection> details_of(const OpenRun&, StorageRef) { return {}; }
std::string to_text(const std::vector<DetailSection>&) { return ""; }
}  // namespace memwall::gui
