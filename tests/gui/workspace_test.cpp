// Does a workspace tell its views what changed, load what they wait for, and keep its state sound?
#include "gui/view/workspace.h"

#include <gtest/gtest.h>
#include <QSignalSpy>

#include "sim/error.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

OpenRun small_run(int layers = 2) {
  GptShape shape;
  shape.layers = layers;
  OpenRun run;
  run.path = run.name = "run" + std::to_string(layers) + ".h5";
  run.source = source_of(std::make_shared<const Run>(simulate_and_record(gpt_step(shape), test_machine(), {})));
  run.spans = std::make_shared<SpanCache>(run.source);
  return run;
}

TEST(Workspace, StartsEmpty) {
  Workspace workspace;
  EXPECT_FALSE(workspace.has_run());
  EXPECT_FALSE(workspace.analysed());
  EXPECT_FALSE(workspace.chosen_range());
}

TEST(Workspace, OpeningLoadsHistoryAnalysisAndComparison) {
  Workspace workspace;
  const QSignalSpy runs(&workspace, &Workspace::runs_changed), loaded(&workspace, &Workspace::loaded);
  workspace.open({small_run(2), small_run(3)});
  EXPECT_EQ(runs.size(), 1);
  EXPECT_FALSE(workspace.state().runs[0].history) << "that comes later";
  workspace.background().wait();
  EXPECT_GE(loaded.size(), 5);
  for (const OpenRun& run : workspace.state().runs) {
    EXPECT_TRUE(run.history);
    EXPECT_TRUE(run.analysis);
  }
  EXPECT_TRUE(workspace.state().comparison);
  EXPECT_EQ(workspace.state().viewport.visible(), workspace.state().whole());
}

TEST(Workspace, WhatWasLoadingForAnEarlierRunIsDropped) {
  Workspace workspace;
  workspace.open({small_run(2), small_run(3)});
  workspace.close();
  workspace.background().wait();  // a result for run 1 would write beyond the runs
  EXPECT_FALSE(workspace.has_run());
  workspace.open({small_run(4)});
  workspace.background().wait();
  EXPECT_EQ(workspace.state().runs[0].history->storages().bytes.size(), workspace.state().runs[0].outline().storages);
}

TEST(Workspace, TheLifeOfAStorageTakesRoomOnlyWhereOneIsChosen) {
  Workspace workspace;
  workspace.open({small_run(2), small_run(3)});
  workspace.background().wait();
  const auto shown = [&] {
    std::vector<std::uint8_t> runs;
    for (const std::size_t i : workspace.state().rows.shown()) {
      const CanvasRow& row = workspace.state().rows.rows()[i];
      if (row.kind == RowKind::residency) runs.push_back(row.run);
    }
    return runs;
  };
  EXPECT_TRUE(shown().empty());
  workspace.select_storage(StorageRef{0, 1});
  EXPECT_EQ(shown(), std::vector<std::uint8_t>{0});
  workspace.reset_rows();
  EXPECT_EQ(shown(), std::vector<std::uint8_t>{0});
  workspace.select_storage(StorageRef{1, 1});
  EXPECT_EQ(shown(), std::vector<std::uint8_t>{1});
  workspace.change_rows([](RowList& rows) {
    for (std::size_t i = 0; i < rows.rows().size(); ++i) rows.row(i).hidden = true;
  });
  workspace.select_storage(StorageRef{1, 2});
  EXPECT_TRUE(shown().empty()) << "hidden by hand";
  workspace.select_storage(std::nullopt);
  workspace.reset_rows();
  EXPECT_TRUE(shown().empty());
}

TEST(Workspace, OnlyChangesAreTold) {
  Workspace workspace;
  workspace.open({small_run()});
  workspace.background().wait();
  const QSignalSpy selection(&workspace, &Workspace::selection_changed), view(&workspace, &Workspace::viewport_changed);
  workspace.select(OpRef{0, 1, false});
  workspace.select(OpRef{0, 1, false});
  EXPECT_EQ(selection.size(), 1);
  workspace.set_cursor(Time(5));
  workspace.set_cursor(Time(5));
  EXPECT_EQ(selection.size(), 2);
  workspace.change_viewport([](Viewport&) {});
  EXPECT_EQ(view.size(), 0);
  workspace.change_viewport([](Viewport& viewport) { viewport.zoom(2, 10); });
  EXPECT_EQ(view.size(), 1);
}

TEST(Workspace, NothingOutsideTheRunIsChosen) {
  Workspace workspace;
  workspace.open({small_run()});
  workspace.background().wait();
  const auto& outline = workspace.state().runs[0].outline();
  workspace.select(OpRef{1, 0, false});
  workspace.select(OpRef{0, static_cast<OpId>(outline.ops), false});
  EXPECT_FALSE(workspace.state().selection.op);
  workspace.select_storage(StorageRef{0, static_cast<StorageId>(outline.storages)});
  EXPECT_FALSE(workspace.state().selection.storage);
  workspace.set_cursor(Time(-7));
  EXPECT_EQ(workspace.state().selection.cursor, Time{});
}

TEST(Workspace, GoingToAnOpBringsItIntoView) {
  Workspace workspace;
  workspace.open({small_run()});
  workspace.background().wait();
  workspace.change_viewport([&](Viewport& viewport) { viewport.show({Time{}, viewport.whole().end / 20}); });
  const OpRef last{0, static_cast<OpId>(workspace.state().runs[0].outline().ops - 1), true};
  workspace.go_to(last);
  EXPECT_EQ(workspace.state().selection.op, last);
  EXPECT_TRUE(workspace.state().viewport.visible().contains(time_of(workspace.state().runs[0], last).begin));
}

TEST(Workspace, ScrollingStopsAtTheEnds) {
  Workspace workspace;
  workspace.open({small_run()});
  workspace.resize(800, 100);
  workspace.scroll_to(1e9);
  EXPECT_EQ(workspace.state().scroll, workspace.most_scroll());
  EXPECT_EQ(workspace.most_scroll(), workspace.state().rows.height() - 100);
  workspace.reveal_row(workspace.state().rows.shown().front());
  EXPECT_EQ(workspace.state().scroll, 0);
  workspace.resize(800, 1e6);
  workspace.scroll_to(50);
  EXPECT_EQ(workspace.state().scroll, 0) << "nothing to scroll";
  workspace.background().wait();
}

// A frame that asks for more than the cache holds must not make it read for ever.
TEST(Workspace, ABlockIsReadOncePerPicture) {
  Workspace workspace;
  workspace.open({small_run()});
  workspace.background().wait();
  const QSignalSpy loaded(&workspace, &Workspace::loaded);
  const std::vector<MissingBlock> missing{{0, 0}};
  for (int frame = 0; frame < 5; ++frame) {
    workspace.load_blocks(missing);
    workspace.background().wait();
  }
  EXPECT_EQ(loaded.size(), 1);
  workspace.change_viewport([](Viewport& viewport) { viewport.zoom(2, 0); });
  workspace.load_blocks(missing);
  workspace.background().wait();
  EXPECT_EQ(loaded.size(), 2) << "another picture";
}

TEST(Workspace, AnotherRunKeepsTheWidthAndStartsAfresh) {
  Workspace workspace;
  workspace.resize(640, 100);
  workspace.open({small_run()});
  EXPECT_EQ(workspace.state().viewport.width(), 640);
  workspace.background().wait();
  workspace.load_blocks({{0, 0}});
  workspace.background().wait();
  workspace.open({small_run(3)});
  workspace.background().wait();
  EXPECT_EQ(workspace.state().viewport.width(), 640);
  workspace.load_blocks({{0, 0}});
  workspace.background().wait();
  EXPECT_TRUE(workspace.state().runs[0].spans->find(0)) << "that this number was read was the other run's";
}

TEST(Workspace, RowsThatGoOrAWindowThatGrowsLeaveNoEmptySpace) {
  Workspace workspace;
  workspace.open({small_run()});
  workspace.background().wait();
  workspace.resize(800, 100);
  workspace.scroll_to(1e9);
  workspace.change_rows([](RowList& rows) {
    for (std::size_t i = 2; i < rows.rows().size(); ++i) rows.row(i).hidden = true;
  });
  EXPECT_EQ(workspace.state().scroll, workspace.most_scroll());
  workspace.change_rows([](RowList& rows) {
    for (std::size_t i = 0; i < rows.rows().size(); ++i) rows.row(i).hidden = false;
  });
  workspace.scroll_to(1e9);
  workspace.resize(800, 150);
  EXPECT_EQ(workspace.state().scroll, workspace.most_scroll());
  // Downwards as far as brings the row into view, no further.
  workspace.scroll_to(0);
  const RowList::Place last = workspace.state().rows.places().back();
  workspace.reveal_row(last.row);
  EXPECT_GT(workspace.state().scroll, 0);
  EXPECT_LE(workspace.state().scroll, last.top);
  EXPECT_LE(last.top + std::min(last.height, 150.0), workspace.state().scroll + 150);
}

TEST(Workspace, AChosenStorageBringsItsRowIntoViewAndHasALife) {
  Workspace workspace;
  workspace.open({small_run()});
  workspace.background().wait();
  workspace.resize(800, 100);
  const auto& history = *workspace.state().runs[0].history;
  StorageId storage = 0;
  while (history.life(storage).empty()) ++storage;
  workspace.select_storage(StorageRef{0, storage});
  EXPECT_GT(workspace.state().scroll, 0) << "its row stands at the lower end";
  const auto life = workspace.chosen_range();
  ASSERT_TRUE(life);
  EXPECT_EQ(life->begin, history.residencies()[history.life(storage).front()].begin);
  EXPECT_LE(life->end, workspace.state().whole().end) << "what is never freed lives until the end of the run";
}

TEST(Workspace, GoingToAHiddenLaneSaysSo) {
  Workspace workspace;
  workspace.open({small_run()});
  workspace.background().wait();
  const QSignalSpy said(&workspace, &Workspace::said);
  workspace.change_rows([](RowList& rows) {
    for (std::size_t i = 0; i < rows.rows().size(); ++i) rows.row(i).hidden = rows.rows()[i].kind == RowKind::lane;
  });
  workspace.go_to({0, 0, true});
  ASSERT_EQ(said.size(), 1);
  EXPECT_TRUE(said[0][0].toString().contains("not shown"));
}

TEST(Workspace, ASpanIsShownWithAMarginARangeAsItIs) {
  Workspace workspace;
  workspace.open({small_run()});
  workspace.background().wait();
  const Time end = workspace.state().whole().end;
  const TimeRange range{end / 4, end / 2};
  workspace.set_range(range);
  workspace.show_chosen();
  EXPECT_EQ(workspace.state().viewport.visible(), range);
  workspace.set_range(std::nullopt);
  const OpenRun& run = workspace.state().runs[0];
  // The longest work in the middle.
  OpRef op;
  Duration longest{-1};
  const SpanBlock spans = run.source->spans(0);
  for (OpId id = 0; id < spans.size(); ++id) {
    if (spans.begin[id] == kNever || spans.begin[id] < end / 4 || spans.begin[id] > end / 2) continue;
    if (spans.time[id] <= longest) continue;
    longest = spans.time[id];
    op = OpRef{0, id, false};
  }
  ASSERT_GT(longest, Duration(1000));
  workspace.select(op);
  workspace.show_chosen();
  EXPECT_LT(workspace.state().viewport.visible().begin, time_of(run, op).begin);
  EXPECT_GT(workspace.state().viewport.visible().end, time_of(run, op).end);
}

// A source whose blocks of spans are damaged.
class DamagedSource : public RunSource {
 public:
  explicit DamagedSource(std::shared_ptr<const RunSource> good) : good_(std::move(good)) {}
  const RunOutline& outline() const override { return good_->outline(); }
  std::vector<LaneCell> cells(std::uint32_t lane, std::uint8_t level, std::uint64_t first,
                              std::uint64_t last) const override {
    return good_->cells(lane, level, first, last);
  }
  SpanBlock spans(std::uint32_t) const override { throw InputError("These spans are damaged."); }
  std::vector<MoveRecord> moves(std::uint64_t first, std::uint64_t count) const override {
    return good_->moves(first, count);
  }
  std::vector<MemoryHigh> memory(std::uint32_t tier, Time begin, Time end, std::size_t most) const override {
    return good_->memory(tier, begin, end, most);
  }
  std::vector<RateHigh> link_rates(std::uint32_t link, Time begin, Time end, std::size_t most) const override {
    return good_->link_rates(link, begin, end, most);
  }
  StorageColumns storages(const LoadProgress& progress) const override { return good_->storages(progress); }
  std::vector<Residency> residency(const LoadProgress& progress) const override { return good_->residency(progress); }
  std::vector<std::uint32_t> at_peak(std::uint32_t tier) const override { return good_->at_peak(tier); }
  OpDetail op(OpId) const override { throw InputError("This op is damaged."); }
  std::string text(StringId id) const override { return good_->text(id); }
  std::vector<std::string> texts(const LoadProgress& progress) const override { return good_->texts(progress); }
  std::vector<OpId> ops_with(const std::vector<bool>& wanted, std::size_t most,
                             const LoadProgress& progress) const override {
    return good_->ops_with(wanted, most, progress);
  }
  std::vector<OpId> followers(OpId id, std::size_t most) const override { return good_->followers(id, most); }
  std::vector<StorageUse> uses_of(StorageId storage, std::size_t most) const override {
    return good_->uses_of(storage, most);
  }
  std::shared_ptr<const Run> whole(const LoadProgress& progress) const override { return good_->whole(progress); }
  std::size_t resident_bytes() const override { return good_->resident_bytes(); }

 private:
  std::shared_ptr<const RunSource> good_;
};

TEST(Workspace, DamageIsToldAndNotAskedForAgain) {
  OpenRun run = small_run();
  run.source = std::make_shared<DamagedSource>(run.source);
  run.spans = std::make_shared<SpanCache>(run.source);
  Workspace workspace;
  workspace.open({run});
  workspace.background().wait();
  const QSignalSpy problem(&workspace, &Workspace::problem), loaded(&workspace, &Workspace::loaded);
  for (int frame = 0; frame < 3; ++frame) {
    workspace.load_blocks({{0, 0}});
    workspace.background().wait();
    workspace.change_viewport([](Viewport& viewport) { viewport.zoom(1.5, 10); });
  }
  EXPECT_EQ(loaded.size(), 1);
  ASSERT_EQ(problem.size(), 1);
  EXPECT_EQ(problem[0][0].toString(), "These spans are damaged.");
  // A step reads in the window's thread: what is wrong is told, nothing is thrown.
  workspace.select(OpRef{0, 5, false});
  workspace.step_along_dependency(Direction::back);
  ASSERT_EQ(problem.size(), 2);
  EXPECT_EQ(problem[1][0].toString(), "This op is damaged.");
}

// What let an op begin is read for the op that is chosen, however many were chosen in the same picture.
TEST(Workspace, EveryChosenOpsRelationsAreRead) {
  Workspace workspace;
  workspace.open({small_run()});
  workspace.background().wait();
  const SpanCache& spans = *workspace.state().runs[0].spans;
  const auto frame = [&] {  // as draw_canvas asks
    const OpId op = workspace.state().selection.op->op;
    if (!spans.find_relations(op)) workspace.load_blocks({{0, SpanCache::kRelations}});
  };
  for (const OpId op : {OpId{3}, OpId{11}, OpId{20}}) {
    workspace.select(OpRef{0, op, false});
    frame();
    workspace.background().wait();
    EXPECT_TRUE(spans.find_relations(op)) << op;
  }
  // Chosen while those of another are on their way: the frame after those asks again.
  workspace.select(OpRef{0, 30, false});
  frame();
  workspace.select(OpRef{0, 31, false});
  frame();
  workspace.background().wait();
  frame();
  workspace.background().wait();
  EXPECT_TRUE(spans.find_relations(31));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
