// Does a workspace tell its views what changed, load what they wait for, and keep its state sound?
#include "gui/view/workspace.h"

#include <gtest/gtest.h>
#include <QSignalSpy>

#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace {

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

}  // namespace
}  // namespace memwall::gui
