#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gui/drawing/row_drawing.h"
#include "gui/drawing/span_text.h"
#include "gui/drawing/stall_window.h"
#include "gui/model/wait_reason_text.h"
#include "traces/figure/axis.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kTextHeight = 13;
constexpr double kNarrowGap = 1.5;  // pixels: narrower gaps are drawn together
static_assert(kWaitReasons <= PixelColumns::kMostCategories);

// Waiting has the colour of what it waits for. The gap that a stream always leaves between two kernels is no news: "".
std::string_view word_of(WaitReason reason) {
  switch (reason) {
    case WaitReason::none:
    case WaitReason::stream_order:
      return "";
    case WaitReason::program_order:
    case WaitReason::hand_over:
    case WaitReason::synchronize:
    case WaitReason::launch_queue:
    case WaitReason::launch:
      return "host";
    case WaitReason::memory:
      return "allocator";
    case WaitReason::event:
      return "event";
    case WaitReason::occupancy:
      return "compute";
    case WaitReason::copy_engine:
      return "copy";
    case WaitReason::page_fault:
      return "fault";
    case WaitReason::peer:
      return "collective";
  }
  return "";
}

std::array<Color, kWaitReasons> reason_colors(const Theme& theme) {
  std::array<Color, kWaitReasons> colors;
  for (std::size_t i = 0; i < colors.size(); ++i) {
    const std::string_view word = word_of(static_cast<WaitReason>(i));
    colors[i] = word.empty() ? theme.grid : color_of(theme, word);
  }
  return colors;
}

// The gap that goes on beyond the right edge ends with a cell further on: looked for level by level, each covering
// more time with as few cells. Nothing if the stream does no more work.
WaitReason reason_beyond(const OpenRun& run, std::uint32_t lane, std::uint8_t level, Time time) {
  constexpr std::uint8_t kLevels = 8;  // further up each time
  constexpr std::int64_t kCells = 512;
  const RunLane& info = run.outline().lanes[lane];
  const Time end = run.outline().run.result.end;
  while (time < end && level < info.levels) {
    const Duration width(std::int64_t{1} << (info.base_log2 + level));
    const Time last = std::min(end, time + kCells * width);
    WaitReason found = WaitReason::none;
    for_each_cell(run, lane, level, {time, last}, [&](const LaneCell& cell, Time, Time cell_end) {
      if (found == WaitReason::none && cell_end > time) found = cell.before;
    });
    if (found != WaitReason::none) return found;
    time = last;
    level = static_cast<std::uint8_t>(level + kLevels < info.levels ? level + kLevels : level);
  }
  return WaitReason::none;
}

class StallDrawing {
 public:
  StallDrawing(const RowPlace& place, CanvasFrame& frame)
      : place_(place),
        figure_(frame.figure),
        words_(frame.words),
        colors_(reason_colors(place.theme)),
        columns_(place.left, place.width, kWaitReasons) {}

  void draw_gaps(const std::vector<StallGap>& gaps) {
    for (const StallGap& gap : gaps) {
      const double x0 = place_.x(gap.begin), x1 = place_.x(gap.end);
      const auto reason = static_cast<std::uint8_t>(gap.reason);
      if (x1 - x0 < kNarrowGap) {
        columns_.add(x0, x1, reason);
        continue;
      }
      const double from = std::max(place_.left, std::round(x0));
      const double to = std::min(place_.left + place_.width, std::round(x1));
      if (to <= from) continue;
      wide_.push_back(Rectangle{from, place_.top, to - from, place_.height - 2, colors_[reason]});
      show(gap.reason);
      label(gap.reason, from, to);
    }
    finish();
  }

  void draw_cells(TimeRange range) {
    const RunLane& lane = place_.run().outline().lanes[place_.row.index];
    const std::uint8_t level = level_for(lane, place_.state.viewport.picoseconds_per_pixel());
    Time done = range.begin;
    for_each_cell(place_.run(), place_.row.index, level, range, [&](const LaneCell& cell, Time begin, Time end) {
      if (begin > done) add(done, begin, cell.before, 1);
      const double busy = static_cast<double>(cell.busy.count()) / static_cast<double>((end - begin).count());
      add(begin, end, cell.stall, 1 - busy);
      done = end;
    });
    if (done < range.end) add(done, range.end, reason_beyond(place_.run(), place_.row.index, level, done), 1);
    finish();
  }

 private:
  void add(Time begin, Time end, WaitReason reason, double share) {
    if (reason == WaitReason::none || share <= 0) return;
    columns_.add(place_.x(begin), place_.x(end), static_cast<std::uint8_t>(reason), share);
  }

  // What is waited for, in a word, where there is room for it.
  void label(WaitReason reason, double from, double to) {
    if (place_.height < kTextHeight) return;
    const std::string text(wait_reason_label(reason));
    if (text.empty() || text_width(text, kSmallText) + 6 > to - from) return;
    labels_.push_back(Text{{from + 3, place_.top + (place_.height - 2) / 2 + 0.36 * kSmallText},
                           text,
                           kSmallText,
                           Anchor::start,
                           palette::text_on(colors_[static_cast<std::size_t>(reason)])});
  }

  void show(WaitReason reason) {
    if (const std::string_view word = word_of(reason); !word.empty()) words_.insert(word);
  }

  void finish() {
    const std::vector<bool> shown = columns_.shown();
    for (std::size_t reason = 0; reason < shown.size(); ++reason)
      if (shown[reason]) show(static_cast<WaitReason>(reason));
    columns_.draw(figure_, place_.top, place_.height - 2, colors_.data(), place_.theme.background);
    for (Rectangle& rectangle : wide_) figure_.items.emplace_back(rectangle);
    for (Text& text : labels_) figure_.items.emplace_back(std::move(text));
  }

  const RowPlace& place_;
  Figure& figure_;
  std::set<std::string_view>& words_;
  std::array<Color, kWaitReasons> colors_;
  PixelColumns columns_;
  std::vector<Rectangle> wide_;
  std::vector<Text> labels_;
};

// Which op the next one waited for, as far as its record says.
std::string cause_text(const OpenRun& run, OpId op) {
  const OpDetail detail = run.source->op(op);
  const OpRecord& record = detail.record;
  const OpId cause = record.device_reason == WaitReason::peer ? record.peer : record.device_cause;
  if (cause == kNoOp || cause == op || cause >= run.outline().ops) return "";
  const OpDetail other = run.source->op(cause);
  const std::string& name = !other.name.empty() ? other.name : other.operator_name;
  return fmt::format("\ncause: {} (op {})", name.empty() ? to_string(other.op.kind) : name, cause);
}

}  // namespace

void draw_stall_row(const RowPlace& place, CanvasFrame& frame) {
  const StallWindow window = find_stalls(place);
  for (const std::uint32_t block : window.lane.missing) frame.missing.push_back({place.row.run, block});
  StallDrawing drawing(place, frame);
  if (window.exact)
    drawing.draw_gaps(window.gaps);
  else
    drawing.draw_cells(window.lane.range);
}

void hit_stall_row(const RowPlace& place, double, double, Hit& hit) {
  const StallWindow window = find_stalls(place);
  const auto reach = Duration(static_cast<std::int64_t>(place.state.viewport.picoseconds_per_pixel()));
  if (!window.exact) {
    const RunLane& lane = place.run().outline().lanes[place.row.index];
    const std::uint8_t level = level_for(lane, place.state.viewport.picoseconds_per_pixel());
    for_each_cell(place.run(), place.row.index, level, {hit.time, hit.time + reach},
                  [&](const LaneCell& cell, Time, Time) {
                    if (cell.stall != WaitReason::none && hit.text.empty())
                      hit.text = fmt::format("stands still, mostly waiting for {}", wait_reason_text(cell.stall));
                  });
    return;
  }
  const StallGap* longest = nullptr;
  for (const StallGap& gap : window.gaps)
    if (gap.begin <= hit.time + reach && gap.end >= hit.time - reach)
      if (!longest || gap.end - gap.begin > longest->end - longest->begin) longest = &gap;
  if (!longest) return;
  hit.op = OpRef{place.row.run, longest->next, false};
  hit.text = fmt::format("waits for {}\n{} from {}", wait_reason_text(longest->reason),
                         format_time(longest->end - longest->begin), format_time(longest->begin));
  const auto block = place.run().spans->find(SpanCache::block_of(longest->next));
  if (block) {
    const auto offset = static_cast<std::uint16_t>(longest->next - block->spans.first);
    hit.text += fmt::format("\nuntil {} (op {}) begins", block->name_of(offset), longest->next);
  }
  hit.text += cause_text(place.run(), longest->next);
}

}  // namespace memwall::gui
