// The life of the selected storage: a bar per tier that it was in, lines for moves between them, ticks for its uses
// (writes above, reads below).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "gui/drawing/lane_window.h"
#include "gui/drawing/row_drawing.h"
#include "traces/figure/axis.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kTick = 6, kNear = 3;

// Where a use stands on the screen; nothing where its block is not in memory.
struct PlacedUse {
  StorageUse use;
  Time time{};
};

class StorageLife {
 public:
  // Nothing of another run's storage, or before residencies are read.
  static std::optional<StorageLife> of(const RowPlace& place) {
    const auto& chosen = place.state.selection.storage;
    const OpenRun& run = place.run();
    if (!chosen || chosen->run != place.row.run || !run.history) return std::nullopt;
    if (chosen->storage >= run.history->storages().bytes.size()) return std::nullopt;
    return StorageLife(place, chosen->storage);
  }

  StorageId storage() const { return storage_; }
  const std::vector<std::uint32_t>& rows() const { return rows_; }
  const Residency& residency(std::uint32_t row) const { return place_.run().history->residencies()[row]; }
  const std::vector<std::uint8_t>& tiers() const { return tiers_; }
  double tier_height() const {
    return (place_.height - 2 * kTick - 2) / static_cast<double>(std::max<std::size_t>(1, tiers_.size()));
  }
  double top_of(std::uint8_t tier) const {
    const auto at = std::lower_bound(tiers_.begin(), tiers_.end(), tier) - tiers_.begin();
    return place_.top + kTick + 1 + static_cast<double>(at) * tier_height();
  }
  double x(Time time) const { return std::clamp(place_.x(time), place_.left, place_.left + place_.width); }

  // Uses in the visible range whose blocks are in memory. `missing`: blocks that are not.
  std::vector<PlacedUse> uses(std::vector<std::uint32_t>& missing, bool& complete) const {
    const OpenRun& run = place_.run();
    const auto known = run.spans->find_uses(storage_);
    if (!known) {
      missing.push_back(SpanCache::kUses);
      return {};
    }
    complete = known->complete;
    const TimeRange range = visible_range(place_);
    std::vector<PlacedUse> found;
    std::shared_ptr<const LoadedBlock> block;
    std::uint32_t number = 0xffffffff;
    for (const StorageUse& use : known->uses) {
      if (SpanCache::block_of(use.op) != number) {
        number = SpanCache::block_of(use.op);
        block = is_visible(number, range) ? run.spans->find(number) : nullptr;
        if (!block && is_visible(number, range)) missing.push_back(number);
      }
      if (!block || use.op - block->spans.first >= block->spans.size()) continue;
      const std::size_t i = use.op - block->spans.first;
      const Time work = block->spans.begin[i], time = work != kNever ? work : block->spans.call_begin[i];
      if (time != kNever && range.contains(time)) found.push_back({use, time});
    }
    return found;
  }

 private:
  StorageLife(const RowPlace& place, StorageId storage)
      : place_(place), storage_(storage), rows_(place.run().history->life(storage)) {
    std::set<std::uint8_t> tiers;
    for (const std::uint32_t row : rows_) tiers.insert(residency(row).tier);
    tiers_.assign(tiers.begin(), tiers.end());
  }

  // Has any lane spans of the block in the range?
  bool is_visible(std::uint32_t number, TimeRange range) const {
    for (const std::vector<LaneBlock>& blocks : place_.run().outline().blocks) {
      const auto at = std::partition_point(blocks.begin(), blocks.end(),
                                           [&](const LaneBlock& block) { return block.block < number; });
      if (at != blocks.end() && at->block == number && range.overlaps(at->begin, at->end)) return true;
    }
    return false;
  }

  const RowPlace& place_;
  StorageId storage_;
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint8_t> tiers_;  // ascending
};

std::string tier_name(const RowPlace& place, std::uint8_t tier) {
  return place.run().outline().run.machine.tiers[tier].name;
}

std::string size_of(const RowPlace& place, StorageId storage) {
  return format_bytes(place.run().history->storages().bytes[storage]);
}

// In the colour of the storage's kind, whichever tier it is in: each tier has a height of its own, and its name.
void draw_residencies(const RowPlace& place, const StorageLife& life, CanvasFrame& frame) {
  Figure& figure = frame.figure;
  const std::string_view kind = to_string(place.run().history->storages().kind[life.storage()]);
  const double right = place.left + place.width;
  const TimeRange range = visible_range(place);
  const Residency* before = nullptr;
  for (const std::uint32_t row : life.rows()) {
    const Residency& residency = life.residency(row);
    // From the end of a residency to the begin of the next in another tier.
    if (before && before->tier != residency.tier && residency.begin >= range.begin && before->end <= range.end)
      figure.add(
          Line{{life.x(std::min(before->end, residency.begin)), life.top_of(before->tier) + life.tier_height() / 2},
               {life.x(std::max(before->end, residency.begin)), life.top_of(residency.tier) + life.tier_height() / 2},
               place.theme.text,
               1});
    before = &residency;
    if (!range.overlaps(residency.begin, residency.end)) continue;
    const double from = life.x(residency.begin), to = std::min(right, std::max(life.x(residency.end), from + 1));
    const Rectangle bar{from, life.top_of(residency.tier) + 0.5, std::max(0.0, to - from),
                        std::max(1.0, life.tier_height() - 1), color_of(place.theme, kind)};
    figure.add(bar);
    frame.words.insert(kind);
    if (bar.height < 9) continue;
    const std::string text = fit_text(tier_name(place, residency.tier), to - from - 8, kSmallText);
    if (!text.empty())
      figure.add(
          Text{{from + 4, bar.y + bar.height / 2 + 3.5}, text, kSmallText, Anchor::start, palette::text_on(bar.fill)});
  }
}

void draw_uses(const RowPlace& place, const StorageLife& life, CanvasFrame& frame) {
  std::vector<std::uint32_t> missing;
  bool complete = true;
  double last[2] = {-1, -1};
  for (const PlacedUse& placed : life.uses(missing, complete)) {
    const bool writes = placed.use.access == Access::write;
    const double at = std::round(place.x(placed.time)) + 0.5;
    if (at == last[writes ? 1 : 0]) continue;  // what falls on one pixel is one tick
    last[writes ? 1 : 0] = at;
    const double bottom = place.top + place.height;
    frame.figure.add(Line{{at, writes ? place.top : bottom - kTick},
                          {at, writes ? place.top + kTick : bottom},
                          writes ? place.theme.cursor : place.theme.text,
                          1.25});
  }
  if (missing.size() > kMostBlocksDrawn) missing.resize(kMostBlocksDrawn);  // the next frame asks for the rest
  for (const std::uint32_t block : missing) frame.missing.push_back({place.row.run, block});
}

void say(const RowPlace& place, const std::string& text, CanvasFrame& frame) {
  frame.figure.add(Text{{place.left + 8, place.top + place.height / 2 + 4},
                        text,
                        place.theme.font_size,
                        Anchor::start,
                        place.theme.faint_text});
}

}  // namespace

void draw_residency_row(const RowPlace& place, CanvasFrame& frame) {
  const auto& chosen = place.state.selection.storage;
  if (!chosen || chosen->run != place.row.run) return say(place, "Choose a storage: its life is shown here.", frame);
  if (!place.run().history) return say(place, "What lives where is being read.", frame);
  const auto life = StorageLife::of(place);
  if (!life) return;
  if (life->rows().empty()) return say(place, fmt::format("Storage {} is never in any tier.", life->storage()), frame);
  draw_residencies(place, *life, frame);
  draw_uses(place, *life, frame);
}

void hit_residency_row(const RowPlace& place, double x, double y, Hit& hit) {
  const auto life = StorageLife::of(place);
  if (!life) return;
  hit.storage = place.state.selection.storage;
  const StorageKind kind = place.run().history->storages().kind[life->storage()];
  hit.text = fmt::format("storage {}, {}, {}", life->storage(), to_string(kind), size_of(place, life->storage()));
  for (const std::uint32_t row : life->rows()) {
    const Residency& residency = life->residency(row);
    if (hit.time < residency.begin || hit.time > residency.end) continue;
    hit.text += fmt::format("\nin {} for {}, from {} to {}", tier_name(place, residency.tier),
                            format_time(residency.end - residency.begin), format_time(residency.begin),
                            format_time(residency.end));
  }
  std::vector<std::uint32_t> missing;
  bool complete = true;
  const bool upper = y < place.top + place.height / 2;
  const PlacedUse* nearest = nullptr;
  const std::vector<PlacedUse> uses = life->uses(missing, complete);
  for (const PlacedUse& placed : uses) {
    const double distance = std::abs(place.x(placed.time) - x);
    if (distance > kNear || (placed.use.access == Access::write) != upper) continue;
    if (!nearest || distance < std::abs(place.x(nearest->time) - x)) nearest = &placed;
  }
  if (!complete) hit.text += fmt::format("\nonly its first {} uses are shown", kMostUses);
  if (!nearest) return;
  hit.op = OpRef{place.row.run, nearest->use.op, false};
  const OpDetail detail = place.run().source->op(nearest->use.op);
  const std::string& name = !detail.operator_name.empty() ? detail.operator_name : detail.name;
  hit.text += fmt::format("\n{} by op {}{}{}", nearest->use.access == Access::write ? "written" : "read", detail.id,
                          name.empty() ? "" : ", ", name);
}

}  // namespace memwall::gui
