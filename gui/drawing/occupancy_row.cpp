// What a tier holds over time: requested bytes by kind of storage, stacked; above them what the allocator adds by
// rounding, and what it holds beside that; the capacity and the peak.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gui/drawing/lane_window.h"
#include "gui/drawing/occupancy_stack.h"
#include "traces/figure/axis.h"
#include "traces/figure/memory_marks.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kHeadroom = 1.06, kLeastForTicks = 44, kSameHeight = 0.25;

// What is known of a tier at once, of one run.
struct TierExtent {
  Bytes capacity = 0, peak = 0, occupied = 0;
  Time peak_time{};
};

TierExtent extent_of(const Run& run, std::size_t tier) {
  TierExtent extent;
  if (tier >= run.machine.tiers.size()) return extent;
  extent.capacity = run.machine.tiers[tier].holds();
  if (tier >= run.result.tiers.size()) return extent;
  const TierResult& result = run.result.tiers[tier];
  extent.peak = result.peak_allocated;
  extent.peak_time = result.peak_time;
  extent.occupied = std::max({result.peak_allocated, result.peak_reserved, result.peak_usage.requested});
  return extent;
}

bool on_device(const CanvasState& state) { return state.clock == MemoryClock::device; }

// Of the clock that is shown; null until it is loaded.
const std::shared_ptr<const ResidencyHistory>& history_of(const CanvasState& state, const OpenRun& run) {
  return on_device(state) ? run.device_history : run.history;
}

// The same by the clock that is shown. What the allocator occupies stays the scale, so that both can be compared.
TierExtent extent_of(const CanvasState& state, const OpenRun& run, std::size_t tier) {
  TierExtent extent = extent_of(run.outline().run, tier);
  if (!on_device(state)) return extent;
  extent.peak = 0;
  if (!run.device_history) return extent;
  const KindHigh high = run.device_history->highest(static_cast<std::uint32_t>(tier));
  extent.peak = std::accumulate(high.bytes.begin(), high.bytes.end(), Bytes{0});
  extent.peak_time = high.time;
  extent.occupied = std::max(extent.occupied, extent.peak);
  return extent;
}

class OccupancyDrawing {
 public:
  OccupancyDrawing(const RowPlace& place, CanvasFrame& frame)
      : place_(place),
        figure_(frame.figure),
        words_(frame.words),
        own_(extent_of(place.state, place.run(), place.row.index)) {
    // Rows of one tier in two runs stand on one scale.
    const std::string& name = place.run().outline().run.machine.tiers[place.row.index].name;
    Bytes occupied = 0, capacity = 0;
    for (const OpenRun& run : place.state.runs) {
      const int tier = run.outline().run.machine.tier(name);
      if (tier < 0) continue;
      const TierExtent extent = extent_of(place.state, run, static_cast<std::size_t>(tier));
      occupied = std::max(occupied, extent.occupied);
      capacity = std::max(capacity, extent.capacity);
    }
    capacity_is_near_ = plot::is_near(capacity, occupied);
    top_ = kHeadroom *
           static_cast<double>(std::max<Bytes>(1, capacity_is_near_ ? std::max(occupied, capacity) : occupied));
  }

  void draw() {
    const std::optional<OccupancyPixels> pixels = occupancy_pixels(place_);
    if (!pixels) return;
    if (!place_.run().outline().run.trace->knowledge.allocations)
      return label({place_.left + place_.width / 2, place_.top + place_.height / 2 + 3.5}, "not recorded",
                   Anchor::middle, place_.theme.faint_text);
    pixels_ = &*pixels;
    // Rounding and cache are the allocator's: they change on its clock.
    const OccupancyCurves curves = on_device(place_.state) ? OccupancyCurves{} : occupancy_curves(place_, *pixels);
    if (!on_device(place_.state)) draw_allocator(curves);
    draw_kinds(curves.allocated);
    if (place_.height >= kLeastForTicks) draw_ticks();
    draw_capacity();
    draw_peak();
  }

 private:
  void draw_allocator(const OccupancyCurves& curves) {
    Color reserved = place_.theme.axis;
    reserved.opacity = 70;
    area(curves.reserved, reserved, place_.theme.axis);
    // Before kinds are read, of all of them together: the colour of none.
    const bool known = place_.run().history != nullptr;
    area(curves.allocated,
         known ? color_of(place_.theme, "rounding") : mixed(place_.theme.background, place_.theme.axis, 0.5), kNoColor);
  }

  double base() const { return place_.top + place_.height - 1; }
  double y(Bytes bytes) const {
    return base() - (place_.height - 2) * std::clamp(static_cast<double>(bytes) / top_, 0.0, 1.0);
  }

  // The area under a curve with one value per pixel; differences that cannot be seen add no corner.
  void area(const std::vector<Bytes>& values, Color fill, Color line) {
    if (std::all_of(values.begin(), values.end(), [](Bytes b) { return b == 0; })) return;
    Polyline outline;
    outline.fill = fill;
    double height = base();
    outline.points.push_back({pixels_->x(0), height});
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double next = y(values[i]);
      if (std::abs(next - height) < kSameHeight && values[i] != 0) continue;
      outline.points.push_back({pixels_->x(i), height});
      outline.points.push_back({pixels_->x(i), next});
      height = next;
    }
    outline.points.push_back({pixels_->x(values.size()), height});
    outline.points.push_back({pixels_->x(values.size()), base()});
    if (line.opacity > 0) {
      Polyline edge;
      edge.points.assign(outline.points.begin() + 1, outline.points.end() - 1);
      edge.stroke = line;
      edge.width = 0.75;
      figure_.add(std::move(outline));
      figure_.add(std::move(edge));
    } else {
      figure_.add(std::move(outline));
    }
  }

  // From the whole stack down to its lowest kind: each covers what is not its own.
  void draw_kinds(const std::vector<Bytes>& allocated) {
    const auto& history = history_of(place_.state, place_.run());
    if (!history) {
      label({place_.left + place_.width / 2, place_.top + 12},
            on_device(place_.state) ? "by the device's clock: being worked out" : "by kind: being read", Anchor::middle,
            place_.theme.faint_text);
      return;
    }
    std::vector<KindHigh> highs = history->highs(place_.row.index, pixels_->range, pixels_->count);
    std::vector<Bytes> sums(highs.size(), 0);
    for (std::size_t i = 0; i < highs.size(); ++i)
      sums[i] = std::accumulate(highs[i].bytes.begin(), highs[i].bytes.end(), Bytes{0});
    for (std::size_t i = 0; i < std::min(sums.size(), allocated.size()); ++i)
      if (y(sums[i]) - y(allocated[i]) >= kSameHeight) words_.insert("rounding");
    for (auto kind = kStackOrder.rbegin(); kind != kStackOrder.rend(); ++kind) {
      const auto k = static_cast<std::size_t>(*kind);
      if (std::none_of(highs.begin(), highs.end(), [k](const KindHigh& high) { return high.bytes[k] != 0; })) continue;
      words_.insert(to_string(*kind));
      area(sums, color_of(place_.theme, to_string(*kind)), kNoColor);
      const std::vector<Bytes> ceiling = sums;
      for (std::size_t i = 0; i < highs.size(); ++i) sums[i] -= highs[i].bytes[k];
      if (place_.height >= kLeastForTicks) name_band(*kind, sums, ceiling);
    }
    for (Text& name : names_) figure_.add(std::move(name));
  }

  // The kind's name where its band is thickest over the name's width; none where it has no room.
  void name_band(StorageKind kind, const std::vector<Bytes>& floor, const std::vector<Bytes>& ceiling) {
    constexpr std::size_t kPlaces = 16, kMargin = 64;  // left of it are the numbers of the axis
    std::string name(to_string(kind));
    std::replace(name.begin(), name.end(), '_', ' ');
    const auto width = static_cast<std::size_t>(text_width(name, kSmallText)) + 8;
    if (floor.size() < width + 2 * kMargin) return;
    double thickest = kSmallText + 3;
    Point at;
    for (std::size_t place = 0; place < kPlaces; ++place) {
      const std::size_t first = kMargin + (floor.size() - width - 2 * kMargin) * place / (kPlaces - 1);
      const double low = y(*std::max_element(floor.begin() + static_cast<std::ptrdiff_t>(first),
                                             floor.begin() + static_cast<std::ptrdiff_t>(first + width)));
      const double high = y(*std::min_element(ceiling.begin() + static_cast<std::ptrdiff_t>(first),
                                              ceiling.begin() + static_cast<std::ptrdiff_t>(first + width)));
      if (low - high <= thickest * 1.05) continue;
      thickest = low - high;
      at = {pixels_->x(first) + 4, (low + high) / 2 + 3.5};
    }
    if (at.x > 0)
      names_.push_back(
          {at, name, kSmallText, Anchor::start, palette::text_on(color_of(place_.theme, to_string(kind)))});
  }

  // A text that is readable on anything.
  void label(Point at, const std::string& text, Anchor anchor, Color color) {
    const double width = text_width(text, kSmallText) + 4;
    Color chip = place_.theme.background;
    chip.opacity = 190;
    figure_.add(
        Rectangle{anchor == Anchor::end ? at.x - width + 2 : at.x - 2, at.y - 9, width, 11.5, chip, kNoColor, 2});
    figure_.add(Text{at, text, kSmallText, anchor, color});
  }

  void draw_ticks() {
    const ScaledUnit unit = byte_unit(top_);
    const double high = top_ / unit.factor, step = nice_step(high, place_.height >= 80 ? 3 : 2);
    for (const double tick : nice_ticks(0, high, place_.height >= 80 ? 4 : 3)) {
      const double at = std::round(y(static_cast<Bytes>(tick * unit.factor))) + 0.5;
      if (tick <= 0 || at < place_.top + 4 || at > base() - 6) continue;
      Color line = place_.theme.text;
      line.opacity = 46;
      figure_.add(Line{{place_.left, at}, {place_.left + place_.width, at}, line, 0.75});
      label({place_.left + 4, at + 3.5}, format_tick(tick, step) + " " + unit.name, Anchor::start, place_.theme.text);
    }
  }

  void draw_capacity() {
    if (own_.capacity <= 0) return;
    const double right = place_.left + place_.width;
    if (!capacity_is_near_) {
      if (place_.height >= kLeastForTicks && place_.run().history)
        label({right - 6, place_.top + 12}, "capacity " + format_bytes(own_.capacity) + ", beyond this scale",
              Anchor::end, place_.theme.faint_text);
      return;
    }
    const double at = std::round(y(own_.capacity)) + 0.5;
    figure_.add(Line{{place_.left, at}, {right, at}, place_.theme.limit, 1.25, true});
    if (place_.height >= kLeastForTicks)
      label({right - 6, at < place_.top + 14 ? at + 12 : at - 4}, "capacity " + format_bytes(own_.capacity),
            Anchor::end, place_.theme.limit);
  }

  void draw_peak() {
    const double at = place_.x(own_.peak_time), right = place_.left + place_.width;
    if (own_.peak == 0 || at < place_.left || at > right) return;
    const double height = y(own_.peak);
    figure_.add(Rectangle{at - 3, height - 3, 6, 6, place_.theme.cursor, place_.theme.background, 3});
    if (place_.height < kLeastForTicks) return;
    const std::string text = "peak " + format_bytes(own_.peak);
    const bool on_left = at + 10 + text_width(text, kSmallText) > right;
    label({on_left ? at - 7 : at + 7, std::max(height + 3.5, place_.top + 11)}, text,
          on_left ? Anchor::end : Anchor::start, place_.theme.text);
  }

  const RowPlace& place_;
  Figure& figure_;
  std::set<std::string_view>& words_;
  TierExtent own_;
  const OccupancyPixels* pixels_ = nullptr;
  bool capacity_is_near_ = false;
  std::vector<Text> names_;  // of kinds: on top of all bands
  double top_ = 1;
};

}  // namespace

void draw_occupancy_row(const RowPlace& place, CanvasFrame& frame) {
  if (place.row.index < place.run().outline().run.machine.tiers.size()) OccupancyDrawing(place, frame).draw();
}

namespace {

// What holds data there, by kind; returns the sum.
Bytes add_kinds(const ResidencyHistory& history, std::uint32_t tier, TimeRange range, std::string& text) {
  const KindHigh high = history.highs(tier, range, 1).front();
  for (auto kind = kStackOrder.rbegin(); kind != kStackOrder.rend(); ++kind)
    if (const Bytes bytes = high.bytes[static_cast<std::size_t>(*kind)]; bytes > 0)
      text += fmt::format("\n{}: {}", to_string(*kind), format_bytes(bytes));
  return std::accumulate(high.bytes.begin(), high.bytes.end(), Bytes{0});
}

void hit_device_clock(const RowPlace& place, const OccupancyPixels& pixels, double x, Hit& hit) {
  std::string kinds;
  const std::string& name = place.run().outline().run.machine.tiers[place.row.index].name;
  if (!place.run().device_history) {
    hit.text = fmt::format("{} at {}, by the device's clock: being worked out", name, format_time(hit.time));
    return;
  }
  const Bytes held = add_kinds(*place.run().device_history, place.row.index, pixels.range_of(pixels.at(x)), kinds);
  hit.text = fmt::format("{} at {}, by the device's clock: {} hold data{}", name, format_time(hit.time),
                         format_bytes(held), kinds);
}

}  // namespace

void hit_occupancy_row(const RowPlace& place, double x, double y, Hit& hit) {
  static_cast<void>(y);
  const Run& run = place.run().outline().run;
  if (place.row.index >= run.machine.tiers.size()) return;
  const std::optional<OccupancyPixels> pixels = occupancy_pixels(place);
  if (!pixels || x < pixels->left || x >= pixels->left + pixels->width) return;
  if (!run.trace->knowledge.allocations) {
    hit.text = run.machine.tiers[place.row.index].name + ": not recorded";
    return;
  }
  if (on_device(place.state)) return hit_device_clock(place, *pixels, x, hit);
  const OccupancyCurves curves = occupancy_curves(place, *pixels);
  const std::size_t i = pixels->at(x);
  const Bytes allocated = curves.allocated[i], reserved = curves.reserved[i];
  const TierExtent extent = extent_of(run, place.row.index);
  hit.text = fmt::format("{} at {}, by the host's clock: {} allocated of {}", run.machine.tiers[place.row.index].name,
                         format_time(hit.time), format_bytes(allocated), format_bytes(extent.capacity));
  if (place.run().history) {
    const Bytes requested = add_kinds(*place.run().history, place.row.index, pixels->range_of(i), hit.text);
    if (allocated > requested) hit.text += "\nadded by rounding: " + format_bytes(allocated - requested);
  } else {
    hit.text += "\nby kind: being read";
  }
  if (reserved > allocated) hit.text += "\nheld by the allocator, not in use: " + format_bytes(reserved - allocated);
  if (extent.capacity > 0 && allocated > extent.capacity)
    hit.text += "\nbeyond the capacity: " + format_bytes(allocated - extent.capacity);
}

}  // namespace memwall::gui
