// Do the rows of what every instant goes to and of the difference look as they were looked at?
#include <gtest/gtest.h>

#include "gui/drawing/canvas_drawing.h"
#include "gui/paint/figure_painter.h"
#include "sim/policy/registry.h"
#include "sim/trace/scale.h"
#include "tests/gui/support/image_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

OpenRun open(memwall::Run run, const std::string& name, bool analysed = true) {
  OpenRun opened;
  opened.path = opened.name = name;
  opened.source = source_of(std::make_shared<const memwall::Run>(std::move(run)));
  opened.spans = std::make_shared<SpanCache>(opened.source);
  if (analysed) opened.analysis = analyse(*opened.source, {});
  return opened;
}

Trace step() {
  GptShape shape;
  shape.layers = 3;
  shape.steps = 2;
  shape.host_gap = nanoseconds(1);
  shape.launch_cost = nanoseconds(4);
  shape.allocator_cost = nanoseconds(2);
  shape.flops_per_second = 4e11;
  shape.bytes_per_second = 4e11;
  return gpt_step(shape);
}

// The second run's kernels are slower in the forward pass and faster in the backward pass: the lag changes its sign.
Trace uneven(Trace trace) {
  for (Op& op : trace.ops)
    if (op.kind == OpKind::kernel)
      op.duration = op.duration * (op.phase == Phase::forward ? 16 : op.phase == Phase::backward ? 4 : 10) / 10;
  return trace;
}

constexpr double kWidth = 800;

CanvasState state_of(std::vector<OpenRun> runs) {
  CanvasState state;
  state.runs = std::move(runs);
  state.viewport = Viewport(state.whole(), kWidth - kTitleWidth);
  state.rows = RowList::of(state.runs);
  for (std::size_t i = 0; i < state.rows.rows().size(); ++i) {
    const RowKind kind = state.rows.rows()[i].kind;
    state.rows.row(i).hidden = kind != RowKind::classes && kind != RowKind::difference;
  }
  if (state.runs.size() == 2 && state.runs[0].analysis && state.runs[1].analysis)
    state.comparison = compare_runs(*state.runs[0].analysis, *state.runs[1].analysis);
  return state;
}

CanvasState compared() {
  return state_of({open(simulate_and_record(step(), test_machine(), {}), "measured.h5"),
                   open(simulate_and_record(uneven(step()), test_machine(), {}), "simulated.h5")});
}

QImage picture(const CanvasState& state, double height, const Theme& theme = light_theme()) {
  return image_of(draw_canvas(state, theme, kWidth, height).figure, 1);
}

TEST(ComparisonImage, TwoRunsZoomedOut) { expect_image(picture(compared(), 246), "comparison_whole"); }

TEST(ComparisonImage, TwoRunsInTheDark) { expect_image(picture(compared(), 246, dark_theme()), "comparison_dark"); }

TEST(ComparisonImage, NearSegmentsHaveNames) {
  CanvasState state = compared();
  for (std::size_t i = 0; i < state.rows.rows().size(); ++i)
    if (state.rows.rows()[i].kind == RowKind::classes) state.rows.row(i).height = 44;
  const Duration length = state.whole().length();
  state.viewport.show({Time{} + length * 40 / 100, Time{} + length * 46 / 100});
  expect_image(picture(state, 260), "comparison_near");
}

TEST(ComparisonImage, AShiftedSecondRunAndAChosenOp) {
  CanvasState state = compared();
  const Duration length = state.whole().length();
  // The first op from a quarter on whose work begins at another time in the second run.
  for (const LagPoint& point : state.comparison->lag) {
    const OpRef chosen{0, point.base, false};
    if (point.time < Time{} + length / 4 || state.shift.count() != 0) continue;
    state.selection.op = chosen;
    state.shift = state.comparison->shift_to(chosen, *state.runs[0].analysis, *state.runs[1].analysis);
    state.viewport.show({point.time - length / 20, point.time + length / 20});
  }
  ASSERT_NE(state.shift, Duration{});
  expect_image(picture(state, 246), "comparison_shifted");
}

TEST(ComparisonImage, WhatIsNotWorkedOutSaysSo) {
  expect_image(picture(state_of({open(simulate_and_record(step(), test_machine(), {}), "first.h5", false),
                                 open(simulate_and_record(step(), test_machine(), {}), "second.h5", false)}),
                       246),
               "comparison_waiting");
}

TEST(ComparisonImage, RanksWaitForTheLast) {
  std::vector<RankProgram> programs;
  for (std::uint32_t r = 0; r < 3; ++r) {
    RankAuthor author(r);
    for (std::uint32_t m = 0; m < 6; ++m) {
      author.kernel(microseconds(10 + (r * 7 + m * 5) % 9 * 4));
      author.order(0, 1);
      author.meet(m, microseconds(8));
      author.order(1, 0);
    }
    programs.push_back(std::move(author).finish());
  }
  CanvasState state =
      state_of({open(simulate_and_record(joined_ranks(std::move(programs)), test_machine(), {}), "ranks.h5")});
  for (std::size_t i = 0; i < state.rows.rows().size(); ++i)
    if (state.rows.rows()[i].kind == RowKind::classes) state.rows.row(i).hidden = false;
  expect_image(picture(state, 140), "classes_of_ranks");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
