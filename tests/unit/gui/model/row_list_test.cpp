// Are the rows of the canvas those that have something in them, in the order and at the place that the header says?
#include "gui/model/row_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/gpt_trace.h"
#include "tests/support/open_run_of.h"
#include "tests/support/straggling_ranks.h"
#include "tests/support/test_machine.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

std::vector<OpenRun> one_run() { return {open_run_of(gpt_step({}), test_machine(), "one.h5")}; }

std::vector<std::string> groups_of(const RowList& list) {
  std::vector<std::string> groups;
  for (const RowList::Place& place : list.places())
    if (place.begins_group) groups.push_back(list.rows()[place.row].group);
  return groups;
}

TEST(RowList, HoldsLanesWithTheirStallsLinksAndMemoryInTheOrderOfTheScreen) {
  const auto runs = one_run();
  const RowList list = RowList::of(runs);
  EXPECT_EQ(groups_of(list), (std::vector<std::string>{"Time", "Memory", "Host threads", "Streams", "Links"}));
  const auto& rows = list.rows();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].kind != RowKind::stall) continue;
    ASSERT_GT(i, 0u);
    EXPECT_EQ(rows[i - 1].kind, RowKind::lane) << "stalls stand under their stream";
    EXPECT_EQ(rows[i - 1].index, rows[i].index);
    EXPECT_EQ(runs[0].outline().lanes[rows[i].index].kind, RunLaneKind::stream);
  }
  std::size_t lanes = 0;
  for (const CanvasRow& row : rows) lanes += row.kind == RowKind::lane;
  std::size_t used = 0;
  for (const RunLane& lane : runs[0].outline().lanes) used += lane.spans > 0;
  EXPECT_EQ(lanes, used);
}

TEST(RowList, WhatNothingUsedIsThereButHidden) {
  const auto runs = one_run();
  const RowList list = RowList::of(runs);
  const memwall::Run& run = runs[0].outline().run;
  std::size_t hidden = 0;
  for (const CanvasRow& row : list.rows()) {
    if (row.kind == RowKind::link) {
      EXPECT_EQ(row.hidden, run.result.links[row.index].bytes == 0) << row.title;
    }
    if (row.kind == RowKind::occupancy) {
      EXPECT_EQ(row.hidden, run.result.tiers[row.index].peak_allocated == 0);
    }
    hidden += row.hidden;
  }
  EXPECT_GT(hidden, 0u) << "the machine has links and tiers that a GPT on one GPU does not use";
  EXPECT_EQ(list.shown().size() + hidden, list.rows().size());
}

TEST(RowList, PlacesFollowEachOtherWithALineAboveEachGroup) {
  const RowList list = RowList::of(one_run());
  double y = 0;
  for (const RowList::Place& place : list.places()) {
    if (place.begins_group) y += RowList::kGroupHeight;
    EXPECT_EQ(place.top, y);
    EXPECT_EQ(place.height, list.rows()[place.row].height);
    const auto inside = list.at(y + place.height / 2);
    ASSERT_TRUE(inside);
    EXPECT_EQ(inside->row, place.row);
    y += place.height;
  }
  EXPECT_EQ(list.height(), y);
  EXPECT_FALSE(list.at(RowList::kGroupHeight / 2)) << "on the line of the first group";
  EXPECT_FALSE(list.at(y + 1));
  EXPECT_FALSE(list.at(-1));
}

// Of several ranks, each has a group.
std::vector<OpenRun> three_ranks() { return {open_run_of(straggling_ranks(), test_machine(), "ranks.h5")}; }

TEST(RowList, RanksAreGroupsAndAllButTheFirstAreFolded) {
  const RowList list = RowList::of(three_ranks());
  EXPECT_EQ(list.ranks(), (std::set<RowList::RankRef>{{0, 0}, {0, 1}, {0, 2}}));
  EXPECT_EQ(list.folded(), (std::set<RowList::RankRef>{{0, 1}, {0, 2}}));
  std::vector<std::string> groups;
  std::map<std::uint16_t, int> shown;
  for (const RowList::Place& place : list.places()) {
    const CanvasRow& row = list.rows()[place.row];
    if (place.begins_group) groups.push_back(row.group);
    if (row.rank) ++shown[*row.rank];
    EXPECT_EQ(place.stands_for_rank, row.rank && *row.rank > 0) << row.title;
  }
  EXPECT_EQ(groups.front(), "Rank 4");
  EXPECT_GT(shown[0], 3);
  EXPECT_EQ(shown[1], 1) << "one row stands for the rank";
  EXPECT_EQ(shown[2], 1);
}

TEST(RowList, ARankHasItsLanesItsMemoryAndItsLinks) {
  const auto runs = three_ranks();
  const RowList list = RowList::of(runs);
  const RunOutline& outline = runs[0].outline();
  for (const CanvasRow& row : list.rows()) {
    const std::string& title = row.title;
    if (row.kind == RowKind::lane) {
      EXPECT_EQ(row.rank, outline.lanes[row.index].rank) << title;
    }
    const bool own = row.kind == RowKind::occupancy || row.kind == RowKind::link;
    if (own && title.ends_with(" rank 5")) {
      EXPECT_EQ(row.rank, 1) << title;
    }
    if (own && title == "hbm") {
      EXPECT_EQ(row.rank, 0) << title;
    }
    if (own && title == "host") {
      EXPECT_EQ(row.rank, std::nullopt) << "all ranks share it";
    }
  }
  EXPECT_TRUE(RowList::of(one_run()).ranks().empty());
}

TEST(RowList, FoldingLeavesOneRowAndUnfoldingBringsAllBack) {
  RowList list = RowList::of(three_ranks());
  list.fold_all(true);
  const double folded = list.height();
  for (const RowList::Place& place : list.places())
    if (list.rows()[place.row].rank) {
      EXPECT_TRUE(place.stands_for_rank);
    }
  list.row(0).hidden = true;  // "where the time goes" of the first rank
  EXPECT_EQ(list.height(), folded) << "its only row stays, or there were no way back";
  list.row(0).hidden = false;
  list.fold_all(false);
  EXPECT_GT(list.height(), folded);
  EXPECT_EQ(list.shown().size(), list.places().size());
  list.fold({0, 2}, true);
  EXPECT_TRUE(list.folded().contains({0, 2}));
  EXPECT_TRUE(list.rank_line_at(1)) << "the line of the first rank";
  EXPECT_FALSE(list.rank_line_at(RowList::kGroupHeight + 1));
}

TEST(RowList, AFilterLooksIntoFoldedRanks) {
  RowList list = RowList::of(three_ranks());
  list.fold_all(true);
  list.filter("communication");
  EXPECT_GE(list.shown().size(), 3u) << "the stream of every rank";
}

TEST(RowList, FilterTakesLettersOfEitherCase) {
  RowList list = RowList::of(one_run());
  list.filter("AUTOGRAD");
  ASSERT_EQ(list.shown().size(), 1u);
  EXPECT_EQ(list.rows()[list.shown()[0]].title, "autograd");
  EXPECT_EQ(list.places().size(), 1u);
  list.filter("no such row");
  EXPECT_TRUE(list.shown().empty());
  EXPECT_EQ(list.height(), 0);
  list.filter("");
  EXPECT_GT(list.shown().size(), 1u);
}

TEST(RowList, MovingPutsARowWhereItIsToldAndKeepsTheOthersOrder) {
  RowList list;
  for (const char* title : {"a", "b", "c", "d"}) list.add({RowKind::lane, 0, 0, title, "", 20, false}, 99);
  const auto titles = [&] {
    std::string all;
    for (const CanvasRow& row : list.rows()) all += row.title;
    return all;
  };
  list.move(0, 2);
  EXPECT_EQ(titles(), "bcad");
  list.move(3, 1);
  EXPECT_EQ(titles(), "bdca");
  list.move(1, 1);
  EXPECT_EQ(titles(), "bdca");
  list.remove(0);
  EXPECT_EQ(titles(), "dca");
  list.add({RowKind::stall, 1, 3, "e", "", 10, false}, 1);
  EXPECT_EQ(titles(), "deca");
  EXPECT_EQ(list.rows()[1].key(), "2/stall/e");
}

TEST(RowList, TwoRunsStandOneBelowTheOtherUnderTheirNames) {
  const std::vector<OpenRun> runs = {open_run_of(gpt_step({}), test_machine(), "before.h5"),
                                     open_run_of(gpt_step({}), test_machine(), "after.h5")};
  const RowList list = RowList::of(runs);
  const std::vector<std::string> groups = groups_of(list);
  EXPECT_EQ(groups.front(), "before.h5: Time");
  EXPECT_EQ(groups.back(), "Difference");
  const std::vector<std::string> first(groups.begin(), groups.begin() + 5);
  EXPECT_EQ(first, (std::vector<std::string>{"before.h5: Time", "after.h5: Time", "before.h5: Memory",
                                             "after.h5: Memory", "before.h5: Host threads"}))
      << "what is compared first stands together";
  EXPECT_EQ(list.rows().back().kind, RowKind::difference);
  std::set<std::string> keys;
  for (const CanvasRow& row : list.rows()) EXPECT_TRUE(keys.insert(row.key()).second) << row.key();
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
