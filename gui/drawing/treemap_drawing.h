// A live set as a treemap: the area of a rectangle is its share of the bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gui/drawing/theme.h"
#include "gui/model/live_set.h"
#include "traces/figure/figure.h"

namespace memwall::gui {

struct TreemapTile {
  Rectangle place;
  std::uint32_t row = 0;  // index into TierLiveSet::rows; of a tile that stands for the rest: kRest
  StorageKind kind = StorageKind::unknown;
};
inline constexpr std::uint32_t kRest = 0xffffffff;

// Squarified (M. Bruls, K. Huizing, J. van Wijk, "Squarified Treemaps", 2000), by kind, then by storage; what would be
// smaller than a pixel is one tile per kind, with the bytes that are in no storage.
std::vector<TreemapTile> treemap(const TierLiveSet& set, double width, double height);

// What a kind's tile for the rest stands for.
struct TreemapRest {
  std::size_t storages = 0;
  Bytes bytes = 0;      // all of it
  Bytes untracked = 0;  // of them: in no storage
};
TreemapRest rest_of(const TierLiveSet& set, const std::vector<TreemapTile>& tiles, StorageKind kind);
std::string to_string(const TreemapRest& rest);  // "and 1234 smaller: 3.2 GB"

// `names`: of storages, for the tiles that have room for a name; the others are called by their number.
Figure draw_treemap(const TierLiveSet& set, const std::vector<TreemapTile>& tiles, std::optional<StorageId> selected,
                    const Theme& theme, double width, double height,
                    const std::map<StorageId, std::string>& names = {});

}  // namespace memwall::gui
