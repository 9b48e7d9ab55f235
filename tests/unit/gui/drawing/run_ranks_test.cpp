// Who waits for whom, by rank and node: does the analysis add up, and does the picture name the last to come?
#include <gtest/gtest.h>

#include <sstream>

#include "gui/drawing/run_figures.h"
#include "gui/model/peer_text.h"
#include "gui/model/time_sentence.h"
#include "sim/error.h"
#include "tests/support/drawn_figure.h"
#include "tests/support/open_run_of.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"
#include "traces/figure/svg.h"
#include "traces/run/analysis/rank_meetings.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

constexpr Duration us(std::int64_t n) { return microseconds(n); }

// Nodes of eight GPUs (test_machine's NVLink). Ranks 0, 1 and 9 compute for 100, 150 and 400 us before they all reduce;
// then 0 and 1 alone, of which rank 0 is 50 us later; each time for 30 us.
Trace three_ranks() {
  std::vector<RankProgram> ranks;
  for (const auto& [number, first] : {std::pair{0u, us(100)}, {1u, us(150)}, {9u, us(400)}}) {
    RankAuthor author(number);
    author.trace().groups = {{"world", 3, {0, 1, 9}}, {"tp", 2, {0, 1}}};
    author.kernel(first);
    author.order(0, 1);
    author.meet(0, us(30));
    author.order(1, 0);
    author.kernel(number == 0 ? us(70) : us(20));
    author.order(0, 1);
    if (number < 2) author.meet(1, us(30), 1, 1);
    ranks.push_back(std::move(author).finish());
  }
  return joined_ranks(std::move(ranks));
}

memwall::Run run_of(const Trace& trace) { return simulate_and_record(trace, test_machine(), {}); }

std::string svg_of(const memwall::Run& run) {
  const Figure figure = run_figure({&run}, {"run"}, {.view = "ranks", .range = {}, .lanes = {}});
  expect_drawn(figure);
  std::ostringstream out;
  write_svg(figure, out);
  return out.str();
}

TEST(RankMeetings, EachWaitIsOfARankForTheLastToCome) {
  const RankMeetings all = rank_meetings(run_of(three_ranks()));
  ASSERT_EQ(all.waits.size(), 3u);
  const auto expect = [](const PeerWait& wait, std::size_t waiter, std::size_t last, Duration time) {
    EXPECT_EQ(wait.waiter, waiter);
    EXPECT_EQ(wait.last, last);
    EXPECT_EQ(wait.time, time);
    EXPECT_EQ(wait.count, 1u);
  };
  expect(all.waits[0], 0, 2, us(300));
  expect(all.waits[1], 1, 0, us(50));
  expect(all.waits[2], 1, 2, us(250));
  ASSERT_EQ(all.groups.size(), 2u);
  EXPECT_EQ(all.groups[0].group.name, "world");
  EXPECT_EQ(all.groups[0].waited, us(550));
  EXPECT_EQ(all.groups[0].last, 2u);
  EXPECT_EQ(all.groups[1].group.members, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(all.groups[1].waited, us(50));
  EXPECT_EQ(all.groups[1].last, 0u);
  EXPECT_EQ(all.groups[1].last_count, 1u);
}

TEST(RankMeetings, OneRankMeetsNobody) {
  const RankMeetings none = rank_meetings(run_of(one_rank(three_ranks(), 0)));
  EXPECT_TRUE(none.waits.empty());
  EXPECT_TRUE(none.groups.empty());
}

TEST(RanksFigure, NamesRanksGroupsAndTheLastToComeByNode) {
  const std::string svg = svg_of(run_of(three_ranks()));
  const auto has = [&](const char* text) { EXPECT_NE(svg.find(text), std::string::npos) << text << "\n" << svg; };
  has("node 0");
  has("node 1");
  has("rank 9, GPU 1");
  has("waits 300 \u00b5s, 300 \u00b5s of it for rank 9 (node 1); came last to 1 of 2");
  has("waits 300 \u00b5s, 250 \u00b5s of it for rank 9 (node 1); came last to 0 of 2");
  has("waits for nobody; came last to 1 of 1");
  has("group world");
  has("3 ranks over 2 nodes");
  has("2 ranks in node 0");
  has("last most often: rank 9 (node 1), 1 of 1");
  EXPECT_THROW(svg_of(run_of(one_rank(three_ranks(), 0))), UsageError);
}

TEST(RanksFigure, LinksSayInWhichNodeTheyAre) {
  const memwall::Run run = run_of(three_ranks());
  const auto link = [&](const char* name) { return static_cast<std::size_t>(run.machine.link(name)); };
  EXPECT_EQ(link_node_text(run, link("pcie_h2d")), "node 0");
  EXPECT_EQ(link_node_text(run, link("pcie_h2d rank 1")), "node 0");
  EXPECT_EQ(link_node_text(run, link("pcie_h2d rank 9")), "node 1");
  Machine machine = test_machine();
  machine.links[static_cast<std::size_t>(machine.link("nvlink_out"))].sharers = 32;
  const memwall::Run shared = simulate_and_record(three_ranks(), machine, {});
  EXPECT_EQ(link_node_text(shared, static_cast<std::size_t>(machine.link("nvlink_out"))), "several nodes");
  EXPECT_EQ(link_node_text(run_of(one_rank(three_ranks(), 2)), 0), "");
}

// Who is in the picture when there are more ranks than it has room for: those that wait or hold others up.
TEST(RanksFigure, OfManyRanksThoseStandThatWaitLongest) {
  std::vector<RankProgram> ranks;
  for (std::uint32_t number = 0; number < 70; ++number) {
    RankAuthor author(number);
    author.kernel(number == 69 ? us(500) : us(100));
    author.order(0, 1);
    if (number >= 6) author.meet(0, us(30));
    ranks.push_back(std::move(author).finish());
  }
  const std::string svg = svg_of(run_of(joined_ranks(std::move(ranks))));
  EXPECT_NE(svg.find("Of 70 ranks those 64 stand here"), std::string::npos);
  EXPECT_EQ(svg.find(">rank 5, GPU 5"), std::string::npos) << "it meets nobody";
  EXPECT_NE(svg.find(">rank 6, GPU 6"), std::string::npos);
  EXPECT_NE(svg.find("for rank 69 (node 8)"), std::string::npos);
}

TEST(RanksFigure, TheViewerNamesTheLastToComeAndTheNodesOfRanks) {
  const OpenRun run = open_run_of(three_ranks(), test_machine());
  EXPECT_EQ(rank_title(run, 0), "Rank 0 (node 0)");
  EXPECT_EQ(rank_title(run, 2), "Rank 9 (node 1)");
  std::vector<std::string> last;
  for (OpId id = 0; id < run.outline().ops; ++id) {
    const OpDetail detail = run.source->op(id);
    if (detail.record.peer != kNoOp) last.push_back(rank_and_node(run, detail.record.peer));
  }
  EXPECT_EQ(last, (std::vector<std::string>{"rank 9 (node 1)", "rank 9 (node 1)", "rank 0 (node 0)"}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
