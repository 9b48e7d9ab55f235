// Of a capture that does not say what takes memory: do pictures say so, instead of showing that nothing was taken?
#include <gtest/gtest.h>

#include <algorithm>

#include "gui/drawing/canvas_drawing.h"
#include "gui/drawing/row_drawing.h"
#include "gui/drawing/run_figures.h"
#include "gui/drawing/theme.h"
#include "tests/support/figure_checks.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/open_run_of.h"
#include "tests/support/test_machine.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

memwall::Run gpt_run(bool recorded) {
  GptShape shape;
  shape.launch_cost = microseconds(2);
  Trace trace = gpt_step(shape);
  trace.knowledge.allocations = recorded;
  return simulate_and_record(std::move(trace), test_machine(), {});
}

std::size_t times_written(const Figure& figure, const std::string& part) {
  const std::vector<Text> texts = memwall::all_of<Text>(figure);
  return static_cast<std::size_t>(std::count_if(
      texts.begin(), texts.end(), [&](const Text& text) { return text.text.find(part) != std::string::npos; }));
}

CanvasState state_of_memory(bool recorded) {
  CanvasState state;
  state.runs = {open_run_of(std::make_shared<const memwall::Run>(gpt_run(recorded)))};
  state.viewport = Viewport(state.whole(), 600);
  return state;
}

Figure whole_figure(const std::vector<const memwall::Run*>& runs, const std::string& view) {
  RunFigureRequest request;
  request.view = view;
  return run_figure(runs, std::vector<std::string>(runs.size(), "run.h5"), request);
}

TEST(UnrecordedMemory, OfTheOverview) {
  for (const bool recorded : {true, false}) {
    const Figure figure = draw_overview(state_of_memory(recorded), light_theme(), 800, 60);
    EXPECT_EQ(times_written(figure, "hbm: peak"), recorded ? 1u : 0u);
    EXPECT_EQ(times_written(figure, "hbm: not recorded"), recorded ? 0u : 1u);
  }
}

TEST(UnrecordedMemory, OfTheRowOfATier) {
  const Theme theme = light_theme();
  CanvasRow row;
  row.kind = RowKind::occupancy;
  row.index = 0;
  for (const bool recorded : {true, false}) {
    const CanvasState state = state_of_memory(recorded);
    const RowPlace place{state, theme, row, 220, 30, state.viewport.width(), 120};
    CanvasFrame frame;
    draw_occupancy_row(place, frame);
    EXPECT_EQ(times_written(frame.figure, "not recorded"), recorded ? 0u : 1u);
    Hit hit;
    hit_occupancy_row(place, 300, 60, hit);
    EXPECT_EQ(hit.text == "hbm: not recorded", !recorded) << hit.text;
  }
}

TEST(UnrecordedMemory, OfFigures) {
  const memwall::Run known = gpt_run(true), unknown = gpt_run(false);
  EXPECT_EQ(times_written(whole_figure({&known}, "tiers"), "not recorded"), 0u);
  const Figure tiers = whole_figure({&unknown}, "tiers");
  EXPECT_EQ(times_written(tiers, "not recorded"), unknown.machine.tiers.size());
  EXPECT_EQ(times_written(tiers, "peak 0 B"), 0u);
  EXPECT_EQ(times_written(whole_figure({&unknown}, "memory"), "not recorded"), 1u);
  const Figure compared = whole_figure({&known, &unknown}, "compare");
  EXPECT_EQ(times_written(compared, "not recorded"), 1u);
  EXPECT_EQ(times_written(compared, "-100.0 %"), 0u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
