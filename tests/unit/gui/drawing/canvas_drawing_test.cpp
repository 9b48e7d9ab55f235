// Does the canvas put ruler, titles and rows where the header says, and does the pointer find them there?
#include "gui/drawing/canvas_drawing.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gui/drawing/ruler.h"
#include "sim/error.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/open_run_of.h"
#include "tests/support/test_machine.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

constexpr double kWidth = 900, kHeight = 500;

CanvasState state_of(std::vector<OpenRun> runs) {
  CanvasState state;
  state.runs = std::move(runs);
  state.rows = RowList::of(state.runs);
  state.viewport = Viewport(state.whole(), kWidth - kTitleWidth);
  return state;
}

CanvasState gpt_state(int steps = 2) {
  GptShape shape;
  shape.steps = steps;
  shape.launch_cost = microseconds(2);
  shape.flops_per_second = shape.bytes_per_second = 2e9;
  return state_of({open_run_of(gpt_step(shape), test_machine())});
}

CanvasFrame sharp(const CanvasState& state, double height = kHeight) {
  CanvasFrame frame = draw_canvas(state, light_theme(), kWidth, height);
  for (int i = 0; i < 4 && !frame.missing.empty(); ++i) {
    for (const MissingBlock& block : frame.missing) state.runs[block.run].spans->load(block.block);
    frame = draw_canvas(state, light_theme(), kWidth, height);
  }
  EXPECT_TRUE(frame.missing.empty());
  return frame;
}

std::vector<std::string> texts(const Figure& figure) {
  std::vector<std::string> all;
  for (const Item& item : figure.items)
    if (const auto* text = std::get_if<Text>(&item)) all.push_back(text->text);
  return all;
}
bool shows(const Figure& figure, const std::string& wanted) {
  const auto all = texts(figure);
  return std::find(all.begin(), all.end(), wanted) != all.end();
}

TEST(CanvasDrawing, ShowsTitlesOfVisibleRowsOnly) {
  CanvasState state = gpt_state();
  const Figure all = sharp(state, 2000).figure;
  EXPECT_TRUE(shows(all, "main"));
  EXPECT_TRUE(shows(all, "autograd"));
  EXPECT_TRUE(shows(all, "Streams"));
  EXPECT_TRUE(shows(all, "hbm"));
  const Figure some = draw_canvas(state, light_theme(), kWidth, 90).figure;
  EXPECT_TRUE(shows(some, "where the time goes"));
  EXPECT_FALSE(shows(some, "main")) << "below the edge";
  state.scroll = 200;
  EXPECT_FALSE(shows(draw_canvas(state, light_theme(), kWidth, 90).figure, "where the time goes")) << "above the edge";
}

TEST(CanvasDrawing, TheSameStateGivesTheSameShapes) {
  const CanvasState state = gpt_state();
  const auto a = sharp(state).figure, b = sharp(state).figure;
  ASSERT_EQ(a.items.size(), b.items.size());
  EXPECT_EQ(texts(a), texts(b));
}

TEST(CanvasDrawing, MissingBlocksAreNamedOnceAndInOrder) {
  const CanvasState state =
      state_of({open_run_of(gpt_step({}), test_machine()), open_run_of(gpt_step({}), test_machine())});
  const CanvasFrame frame = draw_canvas(state, light_theme(), kWidth, 3000);
  EXPECT_EQ(frame.missing, (std::vector<MissingBlock>{{0, 0}, {1, 0}}));
}

TEST(CanvasDrawing, ThePointerFindsTheRowUnderIt) {
  CanvasState state = gpt_state();
  state.scroll = 40;
  for (const RowList::Place& place : state.rows.places()) {
    const double y = kRulerHeight + place.top - state.scroll + place.height / 2;
    if (y < kRulerHeight) continue;
    const Hit title = hit_test(state, 10, y);
    EXPECT_EQ(title.row, place.row);
    EXPECT_TRUE(title.on_title);
    EXPECT_NE(title.text.find(state.rows.rows()[place.row].title), std::string::npos) << "whole, however it is cut";
    const Hit inside = hit_test(state, kTitleWidth + 100, y);
    EXPECT_EQ(inside.row, place.row);
    EXPECT_FALSE(inside.on_title);
    EXPECT_EQ(inside.time, state.viewport.time(100));
  }
  EXPECT_FALSE(hit_test(state, 400, kRulerHeight / 2).row) << "the ruler";
  EXPECT_FALSE(hit_test(state, 400, 1e6).row);
}

TEST(CanvasDrawing, TheSecondRunsTimesAreShifted) {
  CanvasState state = state_of({open_run_of(gpt_step({}), test_machine()), open_run_of(gpt_step({}), test_machine())});
  sharp(state, 3000);
  state.shift = state.whole().end / 4;
  const auto places = state.rows.places();
  for (const RowList::Place& place : places) {
    const CanvasRow& row = state.rows.rows()[place.row];
    if (row.kind != RowKind::lane) continue;
    const Hit hit = hit_test(state, kTitleWidth + 300, kRulerHeight + place.top + 2);
    EXPECT_EQ(hit.time, state.viewport.time(300) - (row.run == 0 ? Duration{} : state.shift));
  }
}

// --- the ruler

TEST(CanvasDrawing, RulerChoosesTheUnitByTheVisibleLength) {
  Viewport view({Time{}, from_seconds(10)}, 680);
  EXPECT_EQ(ruler_ticks(view)[1].text, "2 s");
  view.show({from_seconds(5), from_seconds(5.01)});
  EXPECT_EQ(ruler_ticks(view)[0].text, "5000 ms");
  view.show({microseconds(20), microseconds(20) + nanoseconds(5)});
  EXPECT_EQ(ruler_ticks(view)[1].text,
            "20\xe2\x80\x89"
            "001 ns");
}

TEST(CanvasDrawing, TicksStandWhereTheirNumbersSay) {
  Viewport view({Time{}, from_seconds(10)}, 680);
  for (const double length : {10.0, 1.0, 1e-3, 1e-6, 1e-9}) {
    view.show({from_seconds(3), from_seconds(3 + length)});
    const auto ticks = ruler_ticks(view);
    ASSERT_GE(ticks.size(), 2u);
    EXPECT_LE(ticks.size(), 8u);
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      EXPECT_GE(ticks[i].x, -1);
      EXPECT_LE(ticks[i].x, 681);
      if (i > 0) {
        EXPECT_GT(ticks[i].x - ticks[i - 1].x, 40) << "numbers need room";
      }
    }
  }
}

TEST(CanvasDrawing, StepsBeginAtTheirBoundaries) {
  CanvasState state = gpt_state(3);
  const auto lines = step_lines(state);
  const auto& steps = state.runs[0].outline().steps;
  ASSERT_EQ(lines.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[i].text, steps[i].name);
    EXPECT_DOUBLE_EQ(lines[i].x, state.viewport.x(steps[i].begin));
  }
  state.viewport.show({steps[1].begin + Duration(1000), steps[1].end - Duration(1000)});
  ASSERT_EQ(step_lines(state).size(), 1u) << "the one that is visible, though it began before";
  EXPECT_LT(step_lines(state)[0].x, 0);
}

// --- marks

TEST(CanvasDrawing, AChosenOpIsOutlinedWhereItStands) {
  CanvasState state = gpt_state();
  const std::size_t before = sharp(state, 2000).figure.items.size();
  const SpanBlock spans = state.runs[0].source->spans(0);
  OpId op = 0;
  while (spans.begin[op] == kNever) ++op;
  state.selection.op = OpRef{0, op, false};
  const Figure figure = sharp(state, 2000).figure;
  EXPECT_GT(figure.items.size(), before);
  const double x = kTitleWidth + state.viewport.x(spans.begin[op]);
  const bool outlined = std::any_of(figure.items.begin(), figure.items.end(), [&](const Item& item) {
    const auto* line = std::get_if<Polyline>(&item);
    return line && line->points.size() == 5 && std::abs(line->points[0].x - x) <= 0.51 &&
           line->stroke == light_theme().selection;
  });
  EXPECT_TRUE(outlined);
}

TEST(CanvasDrawing, OpsThatDoNotExistAreNoReasonToFail) {
  CanvasState state = gpt_state();
  state.selection.op = OpRef{0, 1'000'000, false};
  state.found = {{0, 2'000'000, false}, {5, 1, false}};
  EXPECT_EQ(sharp(state).problem, "");
  state.selection.op = OpRef{3, 1, false};
  EXPECT_EQ(sharp(state).problem, "");
}

TEST(CanvasDrawing, WhatASearchFoundIsMarkedInTheRulerBeforeItsBlockIsRead) {
  CanvasState state = gpt_state();
  const auto count = [&] {
    const Figure figure = draw_canvas(state, light_theme(), kWidth, kHeight).figure;
    return std::count_if(figure.items.begin(), figure.items.end(), [](const Item& item) {
      const auto* r = std::get_if<Rectangle>(&item);
      return r && r->fill == light_theme().found;
    });
  };
  EXPECT_EQ(count(), 0);
  state.found = {{0, 10, false}, {0, 100, false}};
  EXPECT_EQ(count(), 2);
}

TEST(CanvasDrawing, AnEmptyCanvasIsDrawnToo) {
  CanvasState state;
  state.viewport = Viewport(TimeRange{}, kWidth - kTitleWidth);
  EXPECT_FALSE(draw_canvas(state, dark_theme(), kWidth, kHeight).figure.items.empty());
  EXPECT_FALSE(draw_overview(state, dark_theme(), kWidth, kOverviewHeight).items.empty());
  EXPECT_FALSE(hit_test(state, 500, 200).row);
}

// A source whose file turns out to be damaged while it is looked at.
class DamagedSource final : public RunSource {
 public:
  explicit DamagedSource(std::shared_ptr<const RunSource> whole) : whole_(std::move(whole)) {}
  const RunOutline& outline() const override { return whole_->outline(); }
  std::vector<LaneCell> cells(std::uint32_t, std::uint8_t, std::uint64_t, std::uint64_t) const override { fail(); }
  SpanBlock spans(std::uint32_t) const override { fail(); }
  std::vector<MoveRecord> moves(std::uint64_t, std::uint64_t) const override { fail(); }
  std::vector<MemoryHigh> memory(std::uint32_t, Time, Time, std::size_t) const override { fail(); }
  std::vector<RateHigh> link_rates(std::uint32_t, Time, Time, std::size_t) const override { fail(); }
  StorageColumns storages(const LoadProgress&) const override { fail(); }
  std::vector<Residency> residency(const LoadProgress&) const override { fail(); }
  std::vector<std::uint32_t> at_peak(std::uint32_t) const override { fail(); }
  OpDetail op(OpId) const override { fail(); }
  std::string text(StringId) const override { fail(); }
  std::vector<std::string> texts(const LoadProgress&) const override { fail(); }
  std::vector<OpId> ops_with(const std::vector<bool>&, std::size_t, const LoadProgress&) const override { fail(); }
  std::vector<OpId> followers(OpId, std::size_t) const override { fail(); }
  std::vector<StorageUse> uses_of(StorageId, std::size_t) const override { fail(); }
  std::shared_ptr<const Run> whole(const LoadProgress&) const override { fail(); }
  std::size_t resident_bytes() const override { return 0; }

 private:
  [[noreturn]] static void fail() { throw InputError("run.h5: damaged here."); }
  std::shared_ptr<const RunSource> whole_;
};

TEST(CanvasDrawing, DamageLeavesRowsEmptyAndIsSaid) {
  OpenRun open = open_run_of(gpt_step({}), test_machine());
  open.source = std::make_shared<DamagedSource>(open.source);
  open.spans = std::make_shared<SpanCache>(open.source);
  const CanvasState state = state_of({open});
  const CanvasFrame frame = draw_canvas(state, light_theme(), kWidth, kHeight);
  EXPECT_EQ(frame.problem, "run.h5: damaged here.");
  EXPECT_TRUE(shows(frame.figure, "main"));
  EXPECT_TRUE(shows(draw_overview(state, light_theme(), kWidth, kOverviewHeight), "run.h5: damaged here."));
  for (double y = kRulerHeight; y < kHeight; y += 5) EXPECT_NO_THROW(hit_test(state, 500, y));
}

// --- the overview

TEST(CanvasDrawing, OverviewSaysThePeakAndTheCapacity) {
  const CanvasState state = gpt_state();
  const Figure figure = draw_overview(state, light_theme(), kWidth, kOverviewHeight);
  const auto all = texts(figure);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].substr(0, 9), "hbm: peak");
  EXPECT_NE(all[0].find("80.0 GB"), std::string::npos);
}

TEST(CanvasDrawing, OverviewFramesTheVisibleRange) {
  CanvasState state = gpt_state();
  const TimeRange whole = state.whole();
  state.viewport.show({whole.end / 4, whole.end / 2});
  const Figure figure = draw_overview(state, light_theme(), kWidth, kOverviewHeight);
  const bool framed = std::any_of(figure.items.begin(), figure.items.end(), [](const Item& item) {
    const auto* r = std::get_if<Rectangle>(&item);
    return r && r->stroke.opacity > 0 && std::abs(r->x - kWidth / 4) < 1 && std::abs(r->width - kWidth / 4) < 1;
  });
  EXPECT_TRUE(framed);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
