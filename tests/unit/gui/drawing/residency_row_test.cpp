// Does the row of a storage show every residency at its time and tier, every move, and every use?
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gui/drawing/canvas_drawing.h"
#include "gui/drawing/row_drawing.h"
#include "tests/support/tiered_run.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

using WholeRun = memwall::Run;

// The one with most residencies, of those that are not read and written by the same ops.
StorageId traveller(const WholeRun& run) {
  std::vector<int> residencies(run.trace->storages.size());
  for (const Residency& residency : run.residency) ++residencies[residency.storage];
  std::vector<int> reads(residencies.size()), writes(residencies.size());
  for (const Use& use : run.trace->uses) ++(use.access == Access::read ? reads : writes)[use.storage];
  for (std::size_t i = 0; i < residencies.size(); ++i)
    if (reads[i] == writes[i]) residencies[i] = 0;
  return static_cast<StorageId>(std::max_element(residencies.begin(), residencies.end()) - residencies.begin());
}

TEST(ResidencyRow, ShowsStaysMovesAndUses) {
  const auto run = paged_run();
  CanvasState state;
  state.runs.push_back(opened(run));
  state.viewport = Viewport(state.whole(), 600);
  const StorageId storage = traveller(*run);
  state.selection.storage = StorageRef{0, storage};
  const Theme theme = light_theme();
  CanvasRow row;
  row.kind = RowKind::residency;
  const RowPlace place{state, theme, row, 220, 10, 600, 34};
  // No frame searches the file for uses: they are named as missing, then their blocks.
  CanvasFrame first;
  draw_residency_row(place, first);
  EXPECT_EQ(first.missing, (std::vector<MissingBlock>{{0, SpanCache::kUses}}));
  state.runs[0].spans->load(SpanCache::kUses);
  CanvasFrame second;
  draw_residency_row(place, second);
  ASSERT_FALSE(second.missing.empty());
  for (const MissingBlock& block : second.missing) {
    EXPECT_TRUE(SpanCache::is_block(block.block));
    state.runs[0].spans->load(block.block);
  }
  CanvasFrame frame;
  draw_residency_row(place, frame);
  EXPECT_TRUE(frame.missing.empty());

  std::vector<Residency> residencies;
  std::set<int> tiers;
  for (const Residency& residency : run->residency)
    if (residency.storage == storage) {
      residencies.push_back(residency);
      tiers.insert(residency.tier);
    }
  ASSERT_GE(residencies.size(), 3u);
  ASSERT_EQ(tiers.size(), 2u);
  std::vector<Rectangle> bars;
  std::set<double> ticks_above, ticks_below;
  std::size_t moves = 0;
  for (const Item& item : frame.figure.items) {
    if (const auto* bar = std::get_if<Rectangle>(&item)) bars.push_back(*bar);
    const auto* line = std::get_if<Line>(&item);
    if (!line) continue;
    if (line->from.y == 10 && line->to.y == 16)
      ticks_above.insert(line->from.x);
    else if (line->from.y == 38 && line->to.y == 44)
      ticks_below.insert(line->from.x);
    else
      ++moves;
  }
  ASSERT_EQ(bars.size(), residencies.size());
  std::size_t expected_moves = 0;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    EXPECT_NEAR(bars[i].x, place.x(residencies[i].begin), 1e-6);
    EXPECT_NEAR(bars[i].x + bars[i].width, std::min(820.0, std::max(place.x(residencies[i].end), bars[i].x + 1)), 1e-6);
    EXPECT_EQ(bars[i].y < 27, residencies[i].tier == *tiers.begin());
    expected_moves += i > 0 && residencies[i].tier != residencies[i - 1].tier ? 1 : 0;
  }
  EXPECT_EQ(moves, expected_moves);
  std::set<double> above, below;
  for (OpId id = 0; id < run->trace->ops.size(); ++id)
    for (const Use& use : run->trace->uses_of(run->trace->ops[id]))
      if (use.storage == storage)
        (use.access == Access::write ? above : below).insert(std::round(place.x(run->result.records[id].start)) + 0.5);
  EXPECT_EQ(ticks_above, above);
  EXPECT_EQ(ticks_below, below);

  Hit hit;
  hit.time = residencies[1].begin + (residencies[1].end - residencies[1].begin) / 2;
  hit_residency_row(place, place.x(hit.time), 20, hit);
  EXPECT_EQ(hit.storage, (StorageRef{0, storage}));
  EXPECT_NE(hit.text.find("\nin " + run->machine.tiers[residencies[1].tier].name + " for "), std::string::npos) << hit.text;
}

TEST(ResidencyRow, SaysWhatItWaitsFor) {
  CanvasState state;
  state.runs.push_back(opened(paged_run()));
  state.viewport = Viewport(state.whole(), 600);
  const Theme theme = dark_theme();
  CanvasRow row;
  const auto text = [&] {
    CanvasFrame frame;
    draw_residency_row({state, theme, row, 220, 10, 600, 34}, frame);
    const auto* said = frame.figure.items.empty() ? nullptr : std::get_if<Text>(&frame.figure.items.front());
    return said ? said->text : "";
  };
  EXPECT_EQ(text(), "Choose a storage: its life is shown here.");
  state.selection.storage = StorageRef{0, 1};
  state.runs[0].history = nullptr;
  EXPECT_EQ(text(), "What lives where is being read.");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
