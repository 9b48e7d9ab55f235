// Does a lane show every span at its pixels, and zoomed out exactly as much as ran?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "gui/drawing/lane_window.h"
#include "gui/drawing/row_drawing.h"
#include "gui/drawing/stall_window.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/open_run_of.h"
#include "tests/support/test_machine.h"
#include "tests/support/varied_runs.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

constexpr double kWidth = 700;

CanvasState state_of(std::shared_ptr<const Run> run) {
  CanvasState state;
  state.runs.push_back(open_run_of(std::move(run)));
  state.rows = RowList::of(state.runs);
  state.viewport = Viewport(state.whole(), kWidth);
  return state;
}

void load_all(const CanvasState& state) {
  const RunOutline& outline = state.runs[0].outline();
  for (std::uint32_t block = 0; block * std::uint64_t{kSpanBlock} < outline.ops; ++block)
    state.runs[0].spans->load(block);
}

std::shared_ptr<const Run> slow_gpt(int steps, double rate = 2e9) {
  GptShape shape;
  shape.layers = 6;
  shape.steps = steps;
  shape.launch_cost = microseconds(2);
  shape.host_gap = microseconds(1);
  shape.flops_per_second = shape.bytes_per_second = rate;
  return std::make_shared<const memwall::Run>(simulate_and_record(gpt_step(shape), test_machine(), {}));
}

// Spans of a lane, from the whole run.
struct TrueSpan {
  Time begin{}, end{};
  OpId op = 0;
};
std::vector<TrueSpan> spans_of(const Run& run, const RunLane& lane) {
  std::vector<TrueSpan> spans;
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    const Op& op = run.trace->ops[id];
    const OpRecord& record = run.result.records[id];
    if (lane.kind == RunLaneKind::thread && op.thread == lane.index && !op.placed && !op.graph_member)
      spans.push_back({record.host_start, record.host_end, id});
    if (lane.kind == RunLaneKind::stream && op.stream == lane.index && runs_on_device(op.kind) &&
        record.start != kNever)
      spans.push_back({record.start, record.end, id});
  }
  return spans;
}

std::vector<Rectangle> rectangles(const Figure& figure) {
  std::vector<Rectangle> all;
  for (const Item& item : figure.items)
    if (const auto* rectangle = std::get_if<Rectangle>(&item)) all.push_back(*rectangle);
  return all;
}

bool covered(const std::vector<Rectangle>& shapes, double x) {
  return std::any_of(shapes.begin(), shapes.end(), [&](const Rectangle& r) { return r.x <= x && x < r.x + r.width; });
}

// Draws a lane's row and compares with the run: each span is there, and nothing else is.
void check_row(const CanvasState& state, const Run& run, const CanvasRow& row) {
  const Theme theme = light_theme();
  const RowPlace place{state, theme, row, 220, 100, kWidth, row.height};
  CanvasFrame frame;
  draw_lane_row(place, frame);
  ASSERT_TRUE(frame.missing.empty());
  const std::vector<Rectangle> shapes = rectangles(frame.figure);
  const CategoryColors colors = category_colors(theme);
  std::vector<bool> busy(static_cast<std::size_t>(kWidth) + 2);
  for (const TrueSpan& span : spans_of(run, state.runs[0].outline().lanes[row.index])) {
    const double x0 = place.x(span.begin), x1 = place.x(span.end);
    if (x1 < 219 || x0 >= 221 + kWidth) continue;
    const double from = std::max(x0, 220.0), to = std::min(x1, 220 + kWidth);
    for (double x = std::floor(from) - 1; x <= to + 1; ++x)
      if (x >= 220 && x < 220 + kWidth) busy[static_cast<std::size_t>(x - 220)] = true;
    // What peeks in by less than half a pixel may be rounded away.
    if (x1 < 220.5 || x0 >= 219.5 + kWidth) continue;
    if (x1 - x0 >= 2.5 && to - from >= 2.5) {
      const auto id = span.op;
      const bool call = state.runs[0].outline().lanes[row.index].kind == RunLaneKind::thread;
      const Op& op = run.trace->ops[id];
      const Color color = colors[static_cast<std::size_t>(call ? call_category(op.kind, op.wait_for)
                                                               : work_category(op.kind, op.phase))];
      const bool found = std::any_of(shapes.begin(), shapes.end(), [&](const Rectangle& r) {
        return std::abs(r.x - from) <= 0.51 && std::abs(r.x + r.width - to) <= 1.51 && r.fill == color;
      });
      EXPECT_TRUE(found) << "op " << id << " from " << from << " to " << to;
    } else {
      EXPECT_TRUE(covered(shapes, from) || covered(shapes, from - 0.5) || covered(shapes, from + 0.5))
          << "op " << span.op << " at " << from;
    }
  }
  for (const Rectangle& r : shapes) {
    EXPECT_GE(r.x, 220);
    EXPECT_LE(r.x + r.width, 220 + kWidth + 1e-9);
    EXPECT_GE(r.y, 100);
    EXPECT_LE(r.y + r.height, 100 + row.height);
    for (double x = r.x; x < r.x + r.width; ++x)
      EXPECT_TRUE(busy[static_cast<std::size_t>(x - 220)]) << "nothing runs at pixel " << x;
  }
}

void check_every_lane(const std::shared_ptr<const Run>& run, unsigned seed) {
  CanvasState state = state_of(run);
  load_all(state);
  std::mt19937 random(seed);
  const std::int64_t end = state.whole().end.count();
  for (int i = 0; i < 12; ++i) {
    const std::int64_t length = end >> (i % 10);
    const std::int64_t begin = static_cast<std::int64_t>(random() / 4294967296.0 * static_cast<double>(end - length));
    state.viewport.show({Time(begin), Time(begin + length)});
    for (const CanvasRow& row : state.rows.rows()) {
      if (row.kind != RowKind::lane) continue;
      const RunLaneKind kind = state.runs[0].outline().lanes[row.index].kind;
      if (kind == RunLaneKind::thread || kind == RunLaneKind::stream) check_row(state, *run, row);
    }
  }
}

TEST(LaneRow, EverySpanOfAGptStandsAtItsPixels) { check_every_lane(slow_gpt(2), 1); }

TEST(LaneRow, EverySpanOfVariedRunsStandsAtItsPixels) {
  unsigned seed = 2;
  for (const NamedRun& varied : varied_runs()) {
    SCOPED_TRACE(varied.name);
    check_every_lane(std::make_shared<const memwall::Run>(varied.run), seed++);
  }
}

TEST(LaneRow, WhileBlocksAreMissingItSaysSoAndShowsTheLevelOfDetail) {
  const CanvasState state = state_of(slow_gpt(2));
  const Theme theme = light_theme();
  for (const CanvasRow& row : state.rows.rows()) {
    if (row.kind != RowKind::lane) continue;
    CanvasFrame frame;
    draw_lane_row({state, theme, row, 220, 100, kWidth, row.height}, frame);
    EXPECT_EQ(frame.missing, (std::vector<MissingBlock>{{0, 0}}));
    EXPECT_FALSE(frame.figure.items.empty());
  }
}

// The busy share of the pixels adds up to what ran: nothing is lost between cells and pixels.
TEST(LaneRow, TheLevelOfDetailAddsUpToTheBusyTimeOfTheLane) {
  const auto run = slow_gpt(8);
  CanvasState state = state_of(run);
  for (std::uint32_t lane = 0; lane < state.runs[0].outline().lanes.size(); ++lane) {
    const RunLane& info = state.runs[0].outline().lanes[lane];
    double wanted = 0;
    for (const TrueSpan& span : spans_of(*run, info)) wanted += to_seconds(span.end - span.begin);
    for (std::uint8_t level = 0; level < info.levels; ++level) {
      PixelColumns columns(0, kWidth, kSpanCategories);
      for_each_cell(state.runs[0], lane, level, state.whole(), [&](const LaneCell& cell, Time begin, Time end) {
        const double share = static_cast<double>(cell.busy.count()) / static_cast<double>((end - begin).count());
        columns.add(state.viewport.x(begin), state.viewport.x(end), static_cast<std::uint8_t>(cell.category), share);
      });
      double found = 0;
      for (std::size_t i = 0; i < columns.size(); ++i)
        found += columns.busy(i) * state.viewport.picoseconds_per_pixel() * 1e-12;
      // The last bucket may go on beyond the end of the run, where no pixel is.
      EXPECT_NEAR(found, wanted, level < 4 ? 1e-3 * wanted : 0.5 * wanted) << info.name << " level " << int(level);
    }
  }
}

TEST(LaneRow, TheLevelIsThatOfAPixelOrFiner) {
  RunLane lane;
  lane.base_log2 = 10;
  lane.levels = 8;
  EXPECT_EQ(level_for(lane, 1), 0);
  EXPECT_EQ(level_for(lane, 2047), 0);
  EXPECT_EQ(level_for(lane, 2048), 1);
  EXPECT_EQ(level_for(lane, 1e12), 7);
}

TEST(LaneRow, AHardlyBusyPixelDoesNotLookFull) {
  const Color black{0, 0, 0}, white{255, 255, 255};
  const auto shade = [&](double share) {
    PixelColumns columns(0, 4, 1);
    columns.add(1, 2, 0, share);
    Figure figure;
    columns.draw(figure, 0, 10, &black, white);
    const auto shapes = rectangles(figure);
    EXPECT_EQ(shapes.size(), 1u);
    return shapes.at(0).fill.red;
  };
  EXPECT_EQ(shade(1), 0);
  EXPECT_GT(shade(0.05), 180);
  EXPECT_LT(shade(0.0001), 255) << "but it is seen";
  EXPECT_GT(shade(0.3), shade(0.6));
}

TEST(LaneRow, NeighboursOfOneColourAreOneRectangle) {
  const Color black{0, 0, 0};
  PixelColumns columns(10, 100, 1);
  columns.add(20, 50, 0);
  columns.add(60.5, 60.6, 0);
  Figure figure;
  columns.draw(figure, 0, 10, &black, {255, 255, 255});
  const auto shapes = rectangles(figure);
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].x, 20);
  EXPECT_EQ(shapes[0].width, 30);
  EXPECT_EQ(shapes[1].x, 60);
}

TEST(LaneRow, OffTheCriticalPathIsDimmed) {
  const auto run = slow_gpt(1);
  CanvasState state = state_of(run);
  load_all(state);
  auto analysis = std::make_shared<RunAnalysis>();
  analysis->on_path.assign(run->trace->ops.size(), false);
  state.runs[0].analysis = analysis;
  state.show_path = true;
  const Theme theme = light_theme();
  for (const CanvasRow& row : state.rows.rows()) {
    if (row.kind != RowKind::lane) continue;
    CanvasFrame frame;
    draw_lane_row({state, theme, row, 220, 100, kWidth, row.height}, frame);
    for (const Rectangle& r : rectangles(frame.figure)) {
      EXPECT_LE(std::abs(r.fill.red - r.fill.green), 1) << "dimmed is grey";
      EXPECT_LE(std::abs(r.fill.red - r.fill.blue), 1);
    }
  }
}

// Zoomed out, where only cells are drawn, the path is seen as well: at its pixels, and nowhere else.
TEST(LaneRow, ZoomedOutTheCriticalPathStandsOut) {
  const auto run = slow_gpt(2, 1e8);  // the device is the slower one
  CanvasState state = state_of(run);
  state.runs[0].analysis = analyse(*state.runs[0].source, {});
  state.show_path = true;
  const Theme theme = light_theme();
  std::size_t colored = 0;
  for (const CanvasRow& row : state.rows.rows()) {
    if (row.kind != RowKind::lane) continue;
    const RunLane& lane = state.runs[0].outline().lanes[row.index];
    if (lane.kind != RunLaneKind::stream) continue;
    CanvasFrame frame;
    const RowPlace place{state, theme, row, 220, 100, kWidth, row.height};
    draw_lane_row(place, frame);
    ASSERT_FALSE(frame.missing.empty()) << "its blocks are not read yet";
    for (const Rectangle& r : rectangles(frame.figure)) {
      if (std::abs(r.fill.red - r.fill.blue) <= 1) continue;
      ++colored;
      const auto& path = state.runs[0].analysis->path;
      EXPECT_TRUE(std::any_of(path.begin(), path.end(), [&](const PathSegment& s) {
        return s.part == PathPart::work && place.x(s.begin) < r.x + r.width && place.x(s.end) > r.x;
      }));
    }
  }
  EXPECT_GE(colored, 3u) << "forward, backward, optimizer";
}

// --- what the pointer says

TEST(LaneRow, ThePointerFindsTheSpanUnderIt) {
  const auto run = slow_gpt(2);
  CanvasState state = state_of(run);
  load_all(state);
  const Time end = state.whole().end;
  state.viewport.show({end / 2, end / 2 + end / 40});
  std::size_t hits = 0;
  for (const CanvasRow& row : state.rows.rows()) {
    if (row.kind != RowKind::lane) continue;
    const Theme theme = light_theme();
    const RowPlace place{state, theme, row, 220, 100, kWidth, row.height};
    const RunLane& lane = state.runs[0].outline().lanes[row.index];
    if (lane.kind == RunLaneKind::engine) continue;
    for (const TrueSpan& span : spans_of(*run, lane)) {
      const double x = (place.x(span.begin) + place.x(span.end)) / 2;
      if (x < 220 || x >= 220 + kWidth || place.x(span.end) - place.x(span.begin) < 1) continue;
      Hit hit;
      hit.time = state.viewport.time(x - 220);
      hit_lane_row(place, x, 105, hit);
      ASSERT_TRUE(hit.op);
      EXPECT_EQ(*hit.op, (OpRef{0, span.op, lane.kind == RunLaneKind::thread}));
      EXPECT_NE(hit.text, "");
      ++hits;
    }
  }
  EXPECT_GT(hits, 20u);
}

// --- stalls

// The gap before a work in its parts: before its call, and after.
std::vector<StallGap> true_gaps(const OpRecord& record, Time reach, OpId op) {
  const bool called = record.host_start != kNever && record.device_reason != WaitReason::none;
  const Time call = record.host_end > record.start ? record.host_start : record.host_end;
  if (!called || call <= reach) return {{reach, record.start, record.device_reason, op}};
  if (call == record.start || record.device_reason == WaitReason::launch)
    return {{reach, record.start, WaitReason::launch, op}};
  return {{reach, call, WaitReason::launch, op}, {call, record.start, record.device_reason, op}};
}

TEST(StallRow, GapsAreTheTimesInWhichNothingRan) {
  std::vector<std::shared_ptr<const memwall::Run>> runs = {slow_gpt(3)};
  for (NamedRun& varied : varied_runs()) runs.push_back(std::make_shared<const memwall::Run>(std::move(varied.run)));
  for (const auto& run : runs) {
    CanvasState state = state_of(run);
    load_all(state);
    const Theme theme = light_theme();
    const Time end = state.whole().end;
    for (int part = 0; part < 10; ++part) {
      state.viewport.show(part == 9 ? state.whole() : TimeRange{end * part / 9, end * part / 9 + end / 30});
      for (const CanvasRow& row : state.rows.rows()) {
        if (row.kind != RowKind::stall) continue;
        const StallWindow window = find_stalls({state, theme, row, 220, 100, kWidth, row.height});
        ASSERT_TRUE(window.exact);
        std::vector<TrueSpan> spans = spans_of(*run, state.runs[0].outline().lanes[row.index]);
        std::stable_sort(spans.begin(), spans.end(),
                         [](const TrueSpan& a, const TrueSpan& b) { return a.begin < b.begin; });
        std::vector<std::tuple<Time, Time, WaitReason, OpId>> wanted, found;
        Time reach{};
        for (const TrueSpan& span : spans) {
          if (span.begin > reach && span.begin >= window.lane.range.begin && reach <= window.lane.range.end)
            for (const StallGap& gap : true_gaps(run->result.records[span.op], reach, span.op))
              wanted.emplace_back(gap.begin, gap.end, gap.reason, gap.next);
          reach = std::max(reach, span.end);
        }
        for (const StallGap& gap : window.gaps) {
          found.emplace_back(gap.begin, gap.end, gap.reason, gap.next);
          EXPECT_LE(gap.end, run->result.records[gap.next].start);
        }
        EXPECT_EQ(found, wanted) << row.title << " part " << part;
      }
    }
  }
}

TEST(StallRow, ThePointerSaysWhatItWaitsForAndHowLong) {
  HandmadeRun hand;
  const OpId copy = hand.device(OpKind::copy, "prefetch", 1, 0, 2, 2, 50);
  hand.device(OpKind::kernel, "gemm", 0, 2, 4, 52, 60, WaitReason::event, copy);
  const CanvasState state = state_of(std::make_shared<const memwall::Run>(hand.finish()));
  load_all(state);
  const Theme theme = light_theme();
  for (const CanvasRow& row : state.rows.rows()) {
    if (row.kind != RowKind::stall || state.runs[0].outline().lanes[row.index].index != 0) continue;
    Hit hit;
    hit.time = microseconds(30);
    hit_stall_row({state, theme, row, 220, 100, kWidth, row.height}, 0, 0, hit);
    EXPECT_EQ(hit.text,
              "waits for an event of another stream\n48.0 \xc2\xb5s from 4.00 \xc2\xb5s\nuntil gemm (op 1) begins\n"
              "cause: prefetch (op 0)");
    EXPECT_EQ(hit.op, (OpRef{0, 1, false}));
    hit = {};
    hit.time = microseconds(1);
    hit_stall_row({state, theme, row, 220, 100, kWidth, row.height}, 0, 0, hit);
    EXPECT_TRUE(hit.text.starts_with("waits for launch by the host\n4.00 \xc2\xb5s from 0 s")) << hit.text;
    return;
  }
  FAIL() << "no stall row";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
