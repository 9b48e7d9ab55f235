#include "gui/drawing/treemap_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "gui/model/readable_name.h"
#include "traces/figure/axis.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kLeastArea = 1;  // square pixels of a tile of its own
constexpr double kTileText = 10;

// The largest ratio of sides in a row of areas along a side: `sum` their sum, all within [low, high].
double worst_ratio(double sum, double low, double high, double side) {
  const double square = side * side / (sum * sum);
  return std::max(square * high, 1 / (square * low));
}

// Squarified: rows of areas, largest first, along the shorter side of what is left of a rectangle, each row as long as
// its tiles do not become longer and thinner by it. REQUIRES: areas descending, all positive.
class Squarified {
 public:
  Squarified(const std::vector<double>& areas, Rectangle place) : areas_(areas), left_(place) {
    tiles_.reserve(areas.size());
  }

  std::vector<Rectangle> lay_out() {
    double rest = std::accumulate(areas_.begin(), areas_.end(), 0.0);
    for (std::size_t first = 0; first < areas_.size();) {
      const double side = std::min(left_.width, left_.height);
      // Areas scaled to what is left: rounding errors do not add up, and the last row ends at the border.
      const double scale = rest > 0 ? left_.width * left_.height / rest : 0;
      double sum = areas_[first] * scale;
      std::size_t last = first + 1;
      double worst = worst_ratio(sum, sum, sum, side);
      for (; last < areas_.size(); ++last) {
        const double area = areas_[last] * scale;
        const double next = worst_ratio(sum + area, area, areas_[first] * scale, side);
        if (!(next <= worst)) break;
        worst = next;
        sum += area;
      }
      place_row(first, last, sum, scale, last == areas_.size());
      for (; first < last; ++first) rest -= areas_[first];
    }
    return std::move(tiles_);
  }

 private:
  void place_row(std::size_t first, std::size_t last, double sum, double scale, bool is_last) {
    const bool upright = left_.width >= left_.height;  // the row stands at the left, its tiles one below the other
    const double side = upright ? left_.height : left_.width, full = upright ? left_.width : left_.height;
    const double depth = is_last ? full : std::min(full, side > 0 ? sum / side : 0);
    double at = 0;
    for (std::size_t i = first; i < last; ++i) {
      const double length = i + 1 == last ? side - at : std::min(side - at, depth > 0 ? areas_[i] * scale / depth : 0);
      tiles_.push_back(upright ? Rectangle{left_.x, left_.y + at, depth, length, {}}
                               : Rectangle{left_.x + at, left_.y, length, depth, {}});
      at += length;
    }
    (upright ? left_.x : left_.y) += depth;
    (upright ? left_.width : left_.height) -= depth;
  }

  const std::vector<double>& areas_;
  Rectangle left_;
  std::vector<Rectangle> tiles_;
};

// The tiles of one kind.
struct KindGroup {
  StorageKind kind = StorageKind::unknown;
  Bytes bytes = 0;
  std::vector<std::uint32_t> rows;  // largest first
};

// Largest first; what is in no storage stands with the kind that it counts as.
std::vector<KindGroup> groups_of(const TierLiveSet& set) {
  std::vector<KindGroup> groups(kStorageKinds);
  for (int kind = 0; kind < kStorageKinds; ++kind) {
    groups[static_cast<std::size_t>(kind)].kind = static_cast<StorageKind>(kind);
    groups[static_cast<std::size_t>(kind)].bytes = set.by_kind[static_cast<std::size_t>(kind)];
  }
  for (std::uint32_t row = 0; row < set.rows.size(); ++row)
    groups[static_cast<std::size_t>(set.rows[row].kind)].rows.push_back(row);
  std::erase_if(groups, [](const KindGroup& group) { return group.bytes <= 0; });
  std::stable_sort(groups.begin(), groups.end(),
                   [](const KindGroup& a, const KindGroup& b) { return a.bytes > b.bytes; });
  return groups;
}

void add_group(const TierLiveSet& set, const KindGroup& group, const Rectangle& place,
               std::vector<TreemapTile>& tiles) {
  const double per_byte = place.width * place.height / static_cast<double>(group.bytes);
  std::vector<double> areas;
  std::vector<std::uint32_t> rows;
  Bytes rest = group.bytes;
  for (const std::uint32_t row : group.rows) {
    const double area = static_cast<double>(set.rows[row].bytes) * per_byte;
    if (!(area >= kLeastArea)) break;
    areas.push_back(area);
    rows.push_back(row);
    rest -= set.rows[row].bytes;
  }
  // The rest is one tile, at its place by size. Bytes in no storage are part of it.
  if (rest > 0) {
    const double area = static_cast<double>(rest) * per_byte;
    const auto at = std::upper_bound(areas.begin(), areas.end(), area, std::greater<>()) - areas.begin();
    areas.insert(areas.begin() + at, area);
    rows.insert(rows.begin() + at, kRest);
  }
  const std::vector<Rectangle> places = Squarified(areas, place).lay_out();
  for (std::size_t i = 0; i < places.size(); ++i) tiles.push_back({places[i], rows[i], group.kind});
}

}  // namespace

std::vector<TreemapTile> treemap(const TierLiveSet& set, double width, double height) {
  std::vector<TreemapTile> tiles;
  if (!(width > 0) || !(height > 0)) return tiles;
  const std::vector<KindGroup> groups = groups_of(set);
  std::vector<double> areas;
  for (const KindGroup& group : groups) areas.push_back(static_cast<double>(group.bytes));
  const std::vector<Rectangle> places = Squarified(areas, {0, 0, width, height, {}}).lay_out();
  for (std::size_t i = 0; i < groups.size(); ++i) add_group(set, groups[i], places[i], tiles);
  return tiles;
}

TreemapRest rest_of(const TierLiveSet& set, const std::vector<TreemapTile>& tiles, StorageKind kind) {
  TreemapRest rest;
  rest.bytes = set.by_kind[static_cast<std::size_t>(kind)];
  rest.untracked = kind == StorageKind::unknown ? set.untracked : 0;
  for (const LiveRow& row : set.rows)
    if (row.kind == kind) ++rest.storages;
  for (const TreemapTile& tile : tiles)
    if (tile.kind == kind && tile.row != kRest) {
      --rest.storages;
      rest.bytes -= set.rows[tile.row].bytes;
    }
  return rest;
}

std::string to_string(const TreemapRest& rest) {
  std::string text;
  if (rest.storages > 0)
    text = fmt::format("and {} smaller: {}", format_tick(static_cast<double>(rest.storages), 1),
                       format_bytes(rest.bytes - rest.untracked));
  if (rest.untracked > 0)
    text += fmt::format("{}{} in no storage", text.empty() ? "" : "; ", format_bytes(rest.untracked));
  return text;
}

namespace {

class TreemapDrawing {
 public:
  TreemapDrawing(const TierLiveSet& set, const std::vector<TreemapTile>& tiles, const Theme& theme,
                 const std::map<StorageId, std::string>& names, Figure& figure)
      : set_(set), tiles_(tiles), theme_(theme), names_(names), figure_(figure) {}

  void draw(std::optional<StorageId> selected) {
    for (const TreemapTile& tile : tiles_) {
      Rectangle rectangle = tile.place;
      rectangle.fill = color_of(theme_, to_string(tile.kind));
      // A border would be all that is seen of a small tile.
      if (std::min(rectangle.width, rectangle.height) >= 3) rectangle.stroke = theme_.background;
      figure_.add(rectangle, title_of(tile));
    }
    draw_group_borders();
    std::optional<StorageKind> last;
    for (const TreemapTile& tile : tiles_) {
      write(tile, tile.kind != last);
      last = tile.kind;
    }
    if (!selected) return;
    for (const TreemapTile& tile : tiles_)
      if (tile.row != kRest && set_.rows[tile.row].storage == *selected) draw_selected(tile.place);
  }

 private:
  // Thicker than between tiles. Tiles of a kind stand together in `tiles`, and fill a rectangle.
  void draw_group_borders() {
    for (std::size_t first = 0; first < tiles_.size();) {
      double left = 1e9, top = 1e9, right = 0, bottom = 0;
      std::size_t i = first;
      for (; i < tiles_.size() && tiles_[i].kind == tiles_[first].kind; ++i) {
        const Rectangle& place = tiles_[i].place;
        left = std::min(left, place.x);
        top = std::min(top, place.y);
        right = std::max(right, place.x + place.width);
        bottom = std::max(bottom, place.y + place.height);
      }
      outline({left, top, right - left, bottom - top, {}}, theme_.background, 2.5);
      first = i;
    }
  }

  void outline(const Rectangle& place, Color color, double width) {
    Polyline line;
    line.points = {{place.x, place.y},
                   {place.x + place.width, place.y},
                   {place.x + place.width, place.y + place.height},
                   {place.x, place.y + place.height},
                   {place.x, place.y}};
    line.stroke = color;
    line.width = width;
    figure_.add(std::move(line));
  }

  void draw_selected(const Rectangle& place) {
    const Rectangle inner{
        place.x + 1, place.y + 1, std::max(1.0, place.width - 2), std::max(1.0, place.height - 2), {}};
    outline(inner, theme_.background, 4);
    outline(inner, theme_.selection, 2);
  }

  std::string name_of_row(std::uint32_t row) const {
    const StorageId storage = set_.rows[row].storage;
    const auto name = names_.find(storage);
    return name != names_.end() && !name->second.empty() ? name->second : fmt::format("storage {}", storage);
  }

  std::string title_of(const TreemapTile& tile) const {
    if (tile.row == kRest) return with_blanks(to_string(tile.kind)) + " " + to_string(rest_of(set_, tiles_, tile.kind));
    return fmt::format("{}, {}: {}", name_of_row(tile.row), with_blanks(to_string(tile.kind)),
                       format_bytes(set_.rows[tile.row].bytes));
  }

  // The end of a path tells more than its beginning: "layers.3.mlp.weight" becomes "…mlp.weight".
  static std::string fitting_name(std::string name, double width) {
    if (text_width(name, kTileText) <= width) return name;
    for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
      std::string end = "\u2026" + name.substr(dot + 1);
      if (text_width(end, kTileText) <= width) return end;
    }
    return name;
  }

  // As many lines as have room, each shortened to the tile.
  void write(const TreemapTile& tile, bool begins_kind) {
    const double width = tile.place.width - 8;
    if (width < 24 || tile.place.height < 15) return;
    const Color color = palette::text_on(color_of(theme_, to_string(tile.kind)));
    double y = tile.place.y + kTileText + 2;
    const auto line = [&](const std::string& text, bool bold) {
      const std::string shown = fit_text(text, width, kTileText, bold);
      if (shown.empty() || y + 2 > tile.place.y + tile.place.height) return;
      figure_.add(Text{{tile.place.x + 4, y}, shown, kTileText, Anchor::start, color, bold});
      y += kTileText + 3;
    };
    if (begins_kind)
      line(fmt::format("{} {}", with_blanks(to_string(tile.kind)),
                       format_bytes(set_.by_kind[static_cast<std::size_t>(tile.kind)])),
           true);
    if (tile.row == kRest) {
      line(to_string(rest_of(set_, tiles_, tile.kind)), false);
    } else {
      const std::string number = fmt::format("#{}", set_.rows[tile.row].storage);
      const std::string name = fitting_name(name_of_row(tile.row), width);
      line(text_width(name, kTileText) > width && !names_.contains(set_.rows[tile.row].storage) ? number : name, false);
      line(format_bytes(set_.rows[tile.row].bytes), false);
    }
  }

  const TierLiveSet& set_;
  const std::vector<TreemapTile>& tiles_;
  const Theme& theme_;
  const std::map<StorageId, std::string>& names_;
  Figure& figure_;
};

}  // namespace

Figure draw_treemap(const TierLiveSet& set, const std::vector<TreemapTile>& tiles, std::optional<StorageId> selected,
                    const Theme& theme, double width, double height, const std::map<StorageId, std::string>& names) {
  Figure figure{width,
                height,
                fmt::format("What lives at {}: {} in {} storages", format_time(set.time), format_bytes(set.requested),
                            set.rows.size()),
                {}};
  figure.add(Rectangle{0, 0, width, height, theme.background});
  if (tiles.empty())
    figure.add(Text{{width / 2, height / 2},
                    "Nothing lives here at this instant.",
                    theme.font_size,
                    Anchor::middle,
                    theme.faint_text});
  TreemapDrawing(set, tiles, theme, names, figure).draw(selected);
  return figure;
}

}  // namespace memwall::gui
