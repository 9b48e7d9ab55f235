// The canvas as people see it: light and dark, from afar and from near, with what is chosen in it.
#include <gtest/gtest.h>

#include <memory>

#include "gui/drawing/canvas_drawing.h"
#include "gui/model/canvas_state.h"
#include "gui/paint/figure_painter.h"
#include "tests/gui/support/image_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace {

constexpr double kWidth = 900, kHeight = 420;

CanvasState two_steps() {
  GptShape shape;
  shape.layers = 3;
  shape.steps = 2;
  shape.flops_per_second = 2e9;
  shape.bytes_per_second = 2e9;
  shape.launch_cost = microseconds(2);
  shape.host_gap = microseconds(1);
  auto run = std::make_shared<Run>(simulate_and_record(gpt_step(shape), test_machine(), RunSettings{}));
  CanvasState state;
  OpenRun open{"two_steps.h5", "two_steps.h5", source_of(run), {}, {}, {}};
  open.spans = std::make_shared<SpanCache>(open.source);
  state.runs.push_back(std::move(open));
  state.rows = RowList::of(state.runs);
  state.viewport = Viewport(state.whole(), kWidth - kTitleWidth);
  return state;
}

// As the viewer does: until nothing is missing.
Figure sharp(const CanvasState& state, const Theme& theme) {
  for (int i = 0; i < 5; ++i) {
    CanvasFrame frame = draw_canvas(state, theme, kWidth, kHeight);
    EXPECT_EQ(frame.problem, "");
    if (frame.missing.empty()) return frame.figure;
    for (const MissingBlock& block : frame.missing) state.runs[block.run].spans->load(block.block);
  }
  ADD_FAILURE() << "blocks are missing however often they are loaded";
  return {};
}

// The middle of the first kernel's work of the second step.
OpRef some_kernel(const CanvasState& state) {
  const SpanBlock spans = state.runs[0].source->spans(0);
  for (OpId id = 150; id < spans.size(); ++id)
    if (spans.kind[id] == OpKind::kernel && spans.time[id] > microseconds(1)) return {0, id, false};
  return {};
}

TEST(CanvasImage, FromAfarInLight) {
  expect_image(image_of(sharp(two_steps(), light_theme()), 1), "canvas_afar_light");
}

TEST(CanvasImage, FromAfarInDark) { expect_image(image_of(sharp(two_steps(), dark_theme()), 1), "canvas_afar_dark"); }

TEST(CanvasImage, NearWithAChosenOp) {
  CanvasState state = two_steps();
  state.selection.op = some_kernel(state);
  const SpanBlock spans = state.runs[0].source->spans(0);
  const Time begin = spans.begin[state.selection.op->op];
  state.viewport.show({begin - microseconds(12), begin + microseconds(12)});
  state.selection.cursor = begin + microseconds(5);
  state.bookmarks.push_back({{begin + microseconds(8), begin + microseconds(10)}, "here"});
  expect_image(image_of(sharp(state, light_theme()), 1), "canvas_near_light");
  expect_image(image_of(sharp(state, dark_theme()), 1), "canvas_near_dark");
}

TEST(CanvasImage, OverviewOfTheWholeRun) {
  CanvasState state = two_steps();
  const TimeRange whole = state.whole();
  state.viewport.show({whole.end / 4, whole.end / 2});
  expect_image(image_of(draw_overview(state, light_theme(), kWidth, kOverviewHeight), 1), "overview_light");
  expect_image(image_of(draw_overview(state, dark_theme(), kWidth, kOverviewHeight), 1), "overview_dark");
}

}  // namespace
}  // namespace memwall::gui
