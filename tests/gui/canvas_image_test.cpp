// The canvas as people see it: light and dark, zoomed out and in, with what is chosen in it.
#include <gtest/gtest.h>

#include <memory>

#include "gui/drawing/canvas_drawing.h"
#include "gui/drawing/legend.h"
#include "gui/model/canvas_state.h"
#include "gui/paint/figure_painter.h"
#include "tests/gui/support/image_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/open_run_of.h"
#include "tests/support/straggling_ranks.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

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

TEST(CanvasImage, ZoomedOutInLight) {
  expect_image(image_of(sharp(two_steps(), light_theme()), 1), "canvas_zoomed_out_light");
}

TEST(CanvasImage, ZoomedOutInDark) {
  expect_image(image_of(sharp(two_steps(), dark_theme()), 1), "canvas_zoomed_out_dark");
}

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

// A step with every kind of lane: compute, copies over PCIe, collectives, and reads and writes of NVMe, whose work
// waits for this and that. Link rates are those of its transfers.
std::shared_ptr<const Run> every_kind_of_lane() {
  HandmadeRun hand;
  hand.host(OpKind::mark, "step", 0, 1);
  const OpId read = hand.device(OpKind::storage_io, "pread", 3, 1, 2, 3, 23);
  hand.op(read).from = 2, hand.op(read).to = 1, hand.op(read).bytes = 80'000;
  const OpId up = hand.device(OpKind::copy, "Memcpy HtoD", 1, 2, 3, 23, 31, WaitReason::event, read);
  hand.op(up).from = 1, hand.op(up).to = 0, hand.op(up).bytes = 80'000;
  const OpId forward = hand.device(OpKind::kernel, "gemm", 0, 3, 4, 31, 50, WaitReason::event, up);
  hand.op(forward).phase = Phase::forward;
  const OpId again = hand.device(OpKind::kernel, "gelu", 0, 4, 5, 50, 56, WaitReason::stream_order, forward);
  hand.op(again).phase = Phase::recompute;
  const OpId backward = hand.device(OpKind::kernel, "gemm_backward", 0, 5, 6, 56, 84, WaitReason::stream_order, again);
  hand.op(backward).phase = Phase::backward;
  const OpId meet = hand.device(OpKind::collective, "all_reduce", 2, 6, 7, 70, 100, WaitReason::event, backward);
  const OpId down = hand.device(OpKind::copy, "Memcpy DtoH", 1, 7, 8, 84, 92, WaitReason::event, backward);
  hand.op(down).from = 0, hand.op(down).to = 1, hand.op(down).bytes = 80'000;
  const OpId write = hand.device(OpKind::storage_io, "pwrite", 3, 8, 9, 92, 120, WaitReason::event, down);
  hand.op(write).from = 1, hand.op(write).to = 2, hand.op(write).bytes = 56'000;
  const OpId step = hand.device(OpKind::kernel, "adam", 0, 9, 10, 100, 112, WaitReason::peer, meet);
  hand.op(step).phase = Phase::optimizer;
  hand.host(OpKind::host_work, "data loading", 10, 14);
  const OpId wait = hand.host(OpKind::synchronize, "cudaDeviceSynchronize", 14, 121);
  hand.waited(wait, WaitReason::synchronize, write);
  Run run = hand.finish();
  for (std::size_t link = 0; link < run.machine.links.size(); ++link) {
    const std::string& name = run.machine.links[link].name;
    for (const OpId id : {read, up, down, write}) {
      const Op& op = run.trace->ops[id];
      const bool crosses = name == (id == read   ? "nvme_read"
                                    : id == up   ? "pcie_h2d"
                                    : id == down ? "pcie_d2h"
                                                 : "nvme_write");
      if (!crosses) continue;
      const OpRecord& record = run.result.records[id];
      run.link_rates[link] = {{record.start, static_cast<double>(op.bytes) / to_seconds(record.end - record.start)},
                              {record.end, 0}};
      run.result.links[link].bytes = op.bytes;
    }
  }
  return std::make_shared<const Run>(std::move(run));
}

TEST(CanvasImage, EveryKindOfLane) {
  CanvasState state;
  OpenRun open{"lanes.h5", "lanes.h5", source_of(every_kind_of_lane()), {}, {}, {}};
  open.spans = std::make_shared<SpanCache>(open.source);
  open.analysis = analyse(*open.source, {});
  state.runs.push_back(std::move(open));
  state.rows = RowList::of(state.runs);
  state.viewport = Viewport(state.whole(), kWidth - kTitleWidth);
  const auto lane = [&](std::string_view title) {
    for (const CanvasRow& row : state.rows.rows())
      if (row.title.find(title) != std::string::npos && !row.hidden) return true;
    return false;
  };
  for (const char* title : {"compute", "communication", "storage", "main", "nvme_read", "nvme_write", "pcie_h2d"})
    EXPECT_TRUE(lane(title)) << title;
  const auto picture = [&](const Theme& theme) {
    CanvasFrame frame;
    for (int i = 0; i < 3; ++i) {
      frame = draw_canvas(state, theme, kWidth, 640);
      for (const MissingBlock& block : frame.missing) state.runs[0].spans->load(block.block);
    }
    EXPECT_TRUE(frame.missing.empty());
    EXPECT_EQ(frame.problem, "");
    return image_of(frame.figure, 1);
  };
  expect_image(picture(light_theme()), "canvas_lanes_light");
  expect_image(picture(dark_theme()), "canvas_lanes_dark");
  // What a person adds: the critical path, a range, a mark of an instant and one of a range, an op with what let it
  // begin, and what a search found.
  state.show_path = true;
  state.selection.range = TimeRange{Time{} + microseconds(10), Time{} + microseconds(18)};
  state.selection.cursor = Time{} + microseconds(115);
  state.selection.op = OpRef{0, 6, false};  // the collective
  state.bookmarks = {{{Time{} + microseconds(60), Time{} + microseconds(60)}, "instant"},
                     {{Time{} + microseconds(88), Time{} + microseconds(98)}, "range"}};
  state.found = {{0, 1, false}, {0, 8, false}};
  expect_image(picture(light_theme()), "canvas_chosen_light");
}

// What the colours mean, below a canvas with all that a legend explains.
TEST(CanvasImage, TheLegendBelowTheCanvas) {
  CanvasState state = two_steps();
  state.runs[0].history = ResidencyHistory::load(*state.runs[0].source, {});
  state.runs[0].analysis = analyse(*state.runs[0].source, {});
  for (const Theme& theme : {light_theme(), dark_theme()}) {
    sharp(state, theme);
    CanvasFrame frame = draw_canvas(state, theme, kWidth, kHeight);
    append_legend(frame, theme);
    expect_image(image_of(frame.figure, 1), theme.dark ? "canvas_legend_dark" : "canvas_legend_light");
  }
}

// Three ranks: the first with its lanes, the others folded, and who is waited for.
TEST(CanvasImage, RanksOfAJob) {
  CanvasState state;
  state.runs.push_back(open_run_of(straggling_ranks(), test_machine(), "ranks.h5"));
  state.runs[0].analysis = analyse(*state.runs[0].source, {});
  state.rows = RowList::of(state.runs);
  state.viewport = Viewport(state.whole(), kWidth - kTitleWidth);
  expect_image(image_of(sharp(state, light_theme()), 1), "canvas_ranks_light");
  state.rows.fold_all(true);
  state.rows.fold({0, 1}, false);
  expect_image(image_of(sharp(state, dark_theme()), 1), "canvas_ranks_dark");
}

TEST(CanvasImage, OverviewOfTheWholeRun) {
  CanvasState state = two_steps();
  const TimeRange whole = state.whole();
  state.viewport.show({whole.end / 4, whole.end / 2});
  expect_image(image_of(draw_overview(state, light_theme(), kWidth, kOverviewHeight), 1), "overview_light");
  expect_image(image_of(draw_overview(state, dark_theme(), kWidth, kOverviewHeight), 1), "overview_dark");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
