#include <algorithm>
#include <cmath>

#include "gui/drawing/lane_window.h"
#include "gui/drawing/legend.h"
#include "gui/drawing/row_drawing.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kNarrowSpan = 1.5;   // pixels: narrower spans are drawn together
constexpr double kWideSpan = 4;       // pixels: spans from this width on are set apart from the next
constexpr double kLeastText = 30;     // pixels of a span with its name in it
constexpr double kLeastTextRow = 14;  // pixels of a row with names in it
constexpr double kStagger = 4;        // pixels: how much lower a span stands that begins before another has ended

class LaneDrawing {
 public:
  LaneDrawing(const RowPlace& place, CanvasFrame& frame)
      : place_(place),
        figure_(frame.figure),
        words_(frame.words),
        lane_(place.run().outline().lanes[place.row.index]),
        colors_(category_colors(place.theme)),
        columns_(place.left, place.width, kSpanCategories + 1),
        scale_(1 / place.state.viewport.picoseconds_per_pixel()),
        origin_(place.state.viewport.visible().begin - place.shift()),
        path_(place.state.show_path && place.run().analysis ? &place.run().analysis->on_path : nullptr) {}

  void draw(const LaneWindow& window) {
    if (window.exact)
      draw_spans(window);
    else
      draw_cells(window.range);
    const std::vector<bool> shown = columns_.shown();
    for (std::uint8_t w = 0; w < shown.size(); ++w)
      if (shown[w]) words_.insert(word_of(w));
  }

 private:
  static std::string_view word_of(std::uint8_t category) {
    return category == kDimmedCategory ? kDimmedWord : to_string(static_cast<SpanCategory>(category));
  }
  double x(Time time) const { return place_.left + static_cast<double>((time - origin_).count()) * scale_; }
  double right() const { return place_.left + place_.width; }

  std::uint8_t category(const LoadedBlock& block, std::uint16_t offset) const {
    if (path_ && lane_.kind != RunLaneKind::pager && !(*path_)[block.spans.first + offset]) return kDimmedCategory;
    return static_cast<std::uint8_t>(category_of(block, offset, lane_.kind));
  }

  // Short ones go into the columns, which lie below; the others are rectangles.
  void draw_spans(const LaneWindow& window) {
    wide_.clear();
    Time reach{};
    for (const auto& block : window.blocks) {
      const LaneSlice slice = block->slice(place_.row.index, lane_.kind);
      const auto [first, last] = slice.within(window.range);
      for (std::size_t i = first; i < last; ++i) {
        const Time begin = slice.begin(i), end = slice.end(i);
        const bool overlaps = begin < reach;
        reach = std::max(reach, end);
        const double x0 = x(begin), x1 = x(end);
        if (x1 < place_.left || x0 > right()) continue;
        const std::uint16_t offset = slice.offset(i);
        // What takes no time is seen all the same.
        if (x1 - x0 < kNarrowSpan)
          columns_.add(x0, std::max(x1, x0 + 0.05), category(*block, offset));
        else
          wide_.push_back({x0, x1, block.get(), offset, overlaps});
      }
    }
    columns_.draw(figure_, top(), height(), colors_.data(), background());
    for (const Wide& span : wide_) draw_wide(span);
  }

  struct Wide {
    double x0 = 0, x1 = 0;
    const LoadedBlock* block = nullptr;
    std::uint16_t offset = 0;
    bool overlaps = false;
  };

  void draw_wide(const Wide& span) {
    const double from = std::max(place_.left, std::round(span.x0)), to = std::min(right(), std::round(span.x1));
    if (to <= from) return;
    const double gap = to - from >= kWideSpan && to < right() ? 1 : 0;
    const std::uint8_t what = category(*span.block, span.offset);
    const Color color = colors_[what];
    words_.insert(word_of(what));
    const double lower = span.overlaps ? std::min(kStagger, height() / 2) : 0;
    figure_.items.emplace_back(Rectangle{from, top() + lower, to - from - gap, height() - lower, color});
    if (to - from < kLeastText || height() < kLeastTextRow) return;
    const double size = std::min(place_.theme.font_size, height() - 4);
    std::string text = fit_text(span.block->name_of(span.offset), to - from - 7, size);
    if (text.empty()) return;
    figure_.items.emplace_back(Text{{from + 3, top() + lower + (height() - lower + size * 0.72) / 2},
                                    std::move(text),
                                    size,
                                    Anchor::start,
                                    palette::text_on(color)});
  }

  void draw_cells(TimeRange range) {
    const std::uint8_t level = level_for(lane_, place_.state.viewport.picoseconds_per_pixel());
    for_each_cell(place_.run(), place_.row.index, level, range, [&](const LaneCell& cell, Time begin, Time end) {
      const double share = static_cast<double>(cell.busy.count()) / static_cast<double>((end - begin).count());
      const auto category = path_ ? kDimmedCategory : static_cast<std::uint8_t>(cell.category);
      columns_.add(x(begin), x(end), category, std::max(share, 1e-6));
    });
    if (path_) add_path(range);
    columns_.draw(figure_, top(), height(), colors_.data(), background());
  }

  // Zoomed out, cells do not tell what lies on the critical path; its segments do. They count more than what is dimmed,
  // so that a pixel with any of the path in it is not dim.
  void add_path(TimeRange range) {
    constexpr double kAgainstDimmed = 1000;
    const RunAnalysis& analysis = *place_.run().analysis;
    if (!analysis.run) return;
    const std::vector<PathSegment>& path = analysis.path;
    const std::vector<Op>& ops = analysis.run->trace->ops;
    auto at = std::partition_point(path.begin(), path.end(), [&](const PathSegment& s) { return s.end < range.begin; });
    for (; at != path.end() && at->begin <= range.end; ++at) {
      if (at->op >= ops.size()) continue;
      const Op& op = ops[at->op];
      const bool call = lane_.kind == RunLaneKind::thread;
      if (at->part != (call ? PathPart::call : PathPart::work)) continue;
      if (lane_.kind == RunLaneKind::thread ? op.thread != lane_.index : op.stream != lane_.index) continue;
      if (lane_.kind != RunLaneKind::thread && lane_.kind != RunLaneKind::stream) continue;
      const SpanCategory category = call ? call_category(op.kind, op.wait_for) : work_category(op.kind, op.phase);
      columns_.add(x(at->begin), x(at->end), static_cast<std::uint8_t>(category), kAgainstDimmed);
    }
  }

  double top() const { return place_.top + 1; }
  double height() const { return place_.height - 2; }
  Color background() const { return place_.theme.background; }

  const RowPlace& place_;
  Figure& figure_;
  std::set<std::string_view>& words_;
  const RunLane& lane_;
  CategoryColors colors_;
  PixelColumns columns_;
  double scale_;
  Time origin_;
  const std::vector<bool>* path_;
  std::vector<Wide> wide_;
};

}  // namespace

void draw_lane_row(const RowPlace& place, CanvasFrame& frame) {
  const LaneWindow window = load_lane_window(place);
  for (const std::uint32_t block : window.missing) frame.missing.push_back({place.row.run, block});
  LaneDrawing(place, frame).draw(window);
}

}  // namespace memwall::gui
