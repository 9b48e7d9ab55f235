// Memory as people see it: what tiers hold, the life of a storage, and what lives at the peak.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "gui/drawing/canvas_drawing.h"
#include "gui/drawing/treemap_drawing.h"
#include "gui/model/canvas_state.h"
#include "gui/model/readable_name.h"
#include "gui/model/storage_name.h"
#include "gui/paint/figure_painter.h"
#include "tests/gui/support/image_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/tiered_run.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

constexpr double kWidth = 900;

// Four layers of a large GPT, two steps, with less memory than they need: what was used least recently waits in host
// memory.
std::shared_ptr<const memwall::Run> paged_run() {
  GptShape shape = seven_billion_gpt();
  shape.layers = 4;
  shape.steps = 2;
  PagerToHost pager;
  TieredRunOptions options;
  options.allocator = "ideal";
  options.own_pager = &pager;
  options.untracked = 900'000'000;
  options.hbm = 13'000'000'000;
  return std::make_shared<const memwall::Run>(tiered_run(tiered_trace(gpt_step(shape), options), options));
}

// The same with room enough, under PyTorch's allocator.
std::shared_ptr<const memwall::Run> roomy_run() {
  GptShape shape = seven_billion_gpt();
  shape.layers = 4;
  shape.launch_cost = microseconds(400);
  shape.allocator_cost = microseconds(50);
  TieredRunOptions options;
  options.hbm = 26'000'000'000;
  return std::make_shared<const memwall::Run>(tiered_run(tiered_trace(gpt_step(shape), options), options));
}

CanvasState memory_rows(const OpenRun& run) {
  CanvasState state;
  state.runs.push_back(run);
  state.rows = RowList::of(state.runs);
  for (std::size_t i = 0; i < state.rows.rows().size(); ++i)
    state.rows.row(i).hidden |= state.rows.rows()[i].kind != RowKind::occupancy;
  state.viewport = Viewport(state.whole(), kWidth - kTitleWidth);
  return state;
}

QImage image(const CanvasState& state, const Theme& theme) {
  const double height = kRulerHeight + state.rows.height() + 4;
  const CanvasFrame frame = draw_canvas(state, theme, kWidth, height);
  EXPECT_EQ(frame.problem, "");
  return image_of(frame.figure, 1);
}

TEST(MemoryImage, WhatTiersHold) {
  const OpenRun run = opened(paged_run());
  expect_image(image(memory_rows(run), light_theme()), "memory_tiers_light");
  expect_image(image(memory_rows(run), dark_theme()), "memory_tiers_dark");
}

TEST(MemoryImage, WhatATierHoldsAroundItsPeak) {
  const OpenRun run = opened(paged_run());
  CanvasState state = memory_rows(run);
  const Time peak = run.outline().run.result.tiers[0].peak_time;
  state.viewport.show({peak - microseconds(20000), peak + microseconds(20000)});
  state.selection.cursor = peak;
  expect_image(image(state, light_theme()), "memory_near_peak_light");
}

TEST(MemoryImage, WhatTheAllocatorAddsAndHolds) {
  const OpenRun run = opened(roomy_run());
  expect_image(image(memory_rows(run), light_theme()), "memory_allocator_light");
}

TEST(MemoryImage, BeforeKindsAreRead) {
  OpenRun run = opened(roomy_run());
  run.history = nullptr;
  expect_image(image(memory_rows(run), light_theme()), "memory_without_kinds_light");
}

// The storage that came and went most often, in both themes.
TEST(MemoryImage, TheLifeOfAStorage) {
  const auto paged = paged_run();
  std::vector<int> residencies(paged->trace->storages.size());
  for (const Residency& residency : paged->residency) ++residencies[residency.storage];
  const auto most = static_cast<StorageId>(std::max_element(residencies.begin(), residencies.end()) - residencies.begin());
  ASSERT_GE(residencies[most], 3);
  CanvasState state = memory_rows(opened(paged));
  for (std::size_t i = 0; i < state.rows.rows().size(); ++i) {
    const bool life = state.rows.rows()[i].kind == RowKind::residency;
    state.rows.row(i).hidden = !life;
    if (life) state.rows.row(i).height = 60;
  }
  state.selection.storage = StorageRef{0, most};
  for (int frame = 0; frame < 2; ++frame)  // uses, then the blocks that they are in
    for (const MissingBlock& block : draw_canvas(state, light_theme(), kWidth, 200).missing)
      state.runs[0].spans->load(block.block);
  expect_image(image(state, light_theme()), "memory_life_light");
  expect_image(image(state, dark_theme()), "memory_life_dark");
}

TEST(MemoryImage, WhatLivesAtThePeak) {
  const OpenRun run = opened(paged_run());
  const TierLiveSet set = live_set(run, 0, run.outline().run.result.tiers[0].peak_time);
  const std::vector<TreemapTile> tiles = treemap(set, 800, 400);
  std::map<StorageId, std::string> names;
  for (std::size_t i = 0; i < 40 && i < set.rows.size(); ++i)
    names[set.rows[i].storage] = readable_name(name_of(run, set.rows[i].storage).label);
  ASSERT_GT(set.rows.size(), 5u);
  expect_image(image_of(draw_treemap(set, tiles, set.rows[3].storage, light_theme(), 800, 400, names), 1),
               "memory_treemap_light");
  expect_image(image_of(draw_treemap(set, tiles, set.rows[3].storage, dark_theme(), 800, 400, names), 1),
               "memory_treemap_dark");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
