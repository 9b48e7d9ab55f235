// A live set as a treemap: the area of a rectangle is its share of the bytes.
#pragma once

#include <optional>
#include <vector>

#include "gui/drawing/theme.h"
#include "gui/model/resident_set.h"
#include "traces/figure/figure.h"

namespace memwall::gui {

struct TreemapTile {
  Rectangle place;
  std::uint32_t row = 0;  // index into ResidentSet::rows; of a tile that stands for the rest: kRest
  StorageKind kind = StorageKind::unknown;
};
inline constexpr std::uint32_t kRest = 0xffffffff;

// Squarified (M. Bruls, K. Huizing, J. van Wijk, "Squarified Treemaps", 2000), by kind, then by storage; what would be
// smaller than a pixel is one tile per kind.
std::vector<TreemapTile> treemap(const ResidentSet& set, double width, double height);
Figure draw_treemap(const ResidentSet& set, const std::vector<TreemapTile>& tiles, std::optional<StorageId> selected,
                    const Theme& theme, double width, double height);

}  // namespace memwall::gui
