#include "gui/drawing/treemap_drawing.h"

namespace memwall::gui {
std::vector<TreemapTile> treemap(const ResidentSet&, double, double) { return {}; }
Figure draw_treemap(const ResidentSet&, const std::vector<TreemapTile>&, std::optional<StorageId>, const Theme&,
                    double width, double height) {
  return {width, height, "", {}};
}
}  // namespace memwall::gui
