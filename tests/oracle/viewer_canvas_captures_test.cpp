// Does the viewer find, draw and compare real captures as they are? As viewer_captures_test.cpp, which asks its models.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gui/drawing/canvas_drawing.h"
#include "gui/model/op_search.h"
#include "gui/model/run_comparison.h"
#include "models/hw/machine_file.h"
#include "sim/trace/ranks.h"
#include "sim/trace/scale.h"
#include "tests/support/viewer_captures.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

class ShownCaptures : public ViewerCaptures {};

// --- words ---

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

TEST_P(ShownCaptures, SearchFindsWhatBearsTheWord) {
  const std::string word = GetParam().word;
  const SearchResult found = search(shown(), 0, word, {});
  EXPECT_TRUE(found.complete);
  if (word.starts_with("storage ")) {
    ASSERT_EQ(found.storages.size(), 1u);
    EXPECT_EQ(found.storages[0].storage, static_cast<StorageId>(std::stoi(word.substr(8))));
    return;
  }
  std::vector<OpId> expected;
  for (OpId id = 0; id < trace().ops.size(); ++id) {
    const Op& op = trace().ops[id];
    for (const StringId text : {op.name, op.operator_name, op.module})
      if (lower(trace().strings[text]).find(lower(word)) != std::string::npos) {
        expected.push_back(id);
        break;
      }
  }
  std::set<OpId> distinct;
  for (const OpRef& op : found.ops) distinct.insert(op.op);
  EXPECT_TRUE(std::equal(distinct.begin(), distinct.end(), expected.begin(), expected.end()))
      << distinct.size() << " found, " << expected.size() << " expected";
  EXPECT_GT(expected.size(), 0u);
}

// --- the canvas ---

TEST_P(ShownCaptures, TheCanvasIsDrawnWholeOnceItsBlocksAreThere) {
  CanvasState state;
  state.runs = {shown()};
  state.rows = RowList::of(state.runs);
  const double height = 1000;
  state.viewport = Viewport(state.whole(), 1000);
  std::size_t classes = 0;
  for (const CanvasRow& row : state.rows.rows()) classes += row.kind == RowKind::classes;
  EXPECT_EQ(classes, rank_count(trace()));
  for (const TimeRange range : zooms()) {
    state.viewport.show(range);
    CanvasFrame frame = draw_canvas(state, light_theme(), 1000 + kTitleWidth, height);
    for (const MissingBlock& missing : frame.missing) state.runs[missing.run].spans->load(missing.block);
    frame = draw_canvas(state, light_theme(), 1000 + kTitleWidth, height);
    EXPECT_TRUE(frame.missing.empty());
    EXPECT_GT(frame.figure.items.size(), 30u);
    EXPECT_LT(frame.figure.items.size(), 100'000u);
  }
}

// Of the rank on which most of the critical path lies.
TEST_P(ShownCaptures, ThePointerSaysWhatEveryInstantGoesTo) {
  CanvasState state;
  state.runs = {shown()};
  state.rows = RowList::of(state.runs);
  state.viewport = Viewport(state.whole(), 1000);
  const RunAnalysis& analysis = *shown().analysis;
  std::size_t rank = 0;
  for (std::size_t r = 1; r < analysis.classes.size(); ++r)
    if (analysis.path_of(r).size() > analysis.path_of(rank).size()) rank = r;
  state.rows.fold_all(false);
  for (std::size_t i = 0; i < state.rows.rows().size(); ++i)
    state.rows.row(i).hidden = state.rows.rows()[i].kind != RowKind::classes || state.rows.rows()[i].index != rank;
  ASSERT_EQ(state.rows.places().size(), 1u);
  const RowList::Place place = state.rows.places().front();
  std::size_t on_path = 0, ops = 0;
  for (const TimeRange range : zooms()) {
    state.viewport.show(range);
    for (double x = 0; x < 1000; x += 7) {
      const Hit strip = hit_test(state, kTitleWidth + x + 0.5, kRulerHeight + place.top + 4);
      const Hit path = hit_test(state, kTitleWidth + x + 0.5, kRulerHeight + place.top + place.height - 4);
      if (strip.time < rank_ends(run())[rank]) {
        EXPECT_NE(strip.text, "") << x;
      }
      on_path += !path.text.empty();
      if (!path.op) continue;
      ++ops;
      EXPECT_EQ(rank_of(trace(), trace().ops[path.op->op]), rank);
      EXPECT_NE(path.text.find(memwall::name_of(run(), path.op->op)), std::string::npos) << path.text;
    }
  }
  EXPECT_GT(ops, 0u);
  // Of one rank the path covers every instant.
  if (analysis.rank_paths.empty()) {
    EXPECT_EQ(on_path, 3u * 143u);
  }
}

// --- two runs ---

TEST_P(ShownCaptures, AgainstTheSameWithSlowerKernelsEveryOpHasACounterpart) {
  const memwall::Run slower =
      simulate_and_record(scaled(trace(), {.kernels = 1.1}), load_machine(GetParam().machine), {});
  const auto other = analyse(*source_of(std::make_shared<const memwall::Run>(slower)), {});
  const auto found = compare_runs(*shown().analysis, *other);
  EXPECT_EQ(found->pairs.size(), trace().ops.size());
  for (OpId id = 0; id < trace().ops.size(); ++id) ASSERT_EQ(found->counterpart({0, id, false}), (OpRef{1, id, false}));
  EXPECT_EQ(found->comparison.waterfall.total(), found->comparison.other_time - found->comparison.base_time);
  std::size_t on_device = 0;
  for (const OpRecord& r : run().result.records) on_device += r.start != kNever;
  EXPECT_EQ(found->lag.size(), on_device);
  for (std::size_t i = 0; i < found->comparison.ops.size(); ++i)
    ASSERT_NE(largest_example(*found, i, *shown().analysis, *other).op, kNoOp);
}

INSTANTIATE_TEST_SUITE_P(Captures, ShownCaptures, testing::ValuesIn(viewer_captures()),
                         [](const testing::TestParamInfo<ViewerCapture>& c) { return std::string(c.param.name); });

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
