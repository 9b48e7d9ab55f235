// Are statistics of any range and any lanes those of a loop over the whole run?
#include "gui/model/selection_statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/support/tiered_run.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

using WholeRun = memwall::Run;

struct Span {
  Time begin{}, end{};
  OpId op = kNoOp;
  bool call = false;
};

// Every span of a lane, from the whole run.
std::vector<Span> spans_of(const WholeRun& run, const RunLane& lane) {
  std::vector<Span> spans;
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    const Op& op = run.trace->ops[id];
    const OpRecord& record = run.result.records[id];
    if (lane.kind == RunLaneKind::thread && op.thread == lane.index && !op.placed && !op.graph_member)
      spans.push_back({record.host_start, record.host_end, id, true});
    if (lane.kind == RunLaneKind::stream && op.stream == lane.index && record.start != kNever)
      spans.push_back({record.start, record.end, id, false});
  }
  if (lane.kind == RunLaneKind::pager)
    for (const MoveRecord& move : run.result.moves)
      if (move.from == lane.from && move.to == lane.to) spans.push_back({move.start, move.end, kNoOp, false});
  return spans;
}

std::string name_of_span(const WholeRun& run, const Span& span, StatisticsKey key) {
  if (span.op == kNoOp) return "pager";
  const Op& op = run.trace->ops[span.op];
  const std::string kind(to_string(op.kind));
  switch (key) {
    case StatisticsKey::op: {
      const StringId name = op.name != 0 ? op.name : op.operator_name;
      return name != 0 ? run.trace->strings[name] : kind;
    }
    case StatisticsKey::module:
      return op.module == 0 ? "no module" : run.trace->strings[op.module];
    case StatisticsKey::phase:
      return op.phase == Phase::unknown ? "no phase" : std::string(to_string(op.phase));
    case StatisticsKey::kind:
      break;
  }
  return kind;
}

TEST(SelectionStatisticsTest, AreThoseOfALoopOverTheWholeRun) {
  const auto run = paged_run();
  const OpenRun open = opened(run);
  const auto& lanes = open.outline().lanes;
  ASSERT_TRUE(std::any_of(lanes.begin(), lanes.end(), [](const RunLane& l) { return l.kind == RunLaneKind::pager; }));
  std::mt19937_64 random(3);
  std::uniform_int_distribution<std::int64_t> instant(0, run->result.end.count());
  for (int round = 0; round < 48; ++round) {
    const auto key = static_cast<StatisticsKey>(round % kStatisticsKeys);
    const TimeRange range = round < 4 ? open.whole() : range_between(Time(instant(random)), Time(instant(random)));
    std::vector<bool> shown;
    if (round % 3 == 1) {
      for (const RunLane& lane : lanes) shown.push_back(lane.kind != RunLaneKind::engine && random() % 2 == 0);
    }
    std::map<std::string, StatisticsRow> expected;
    StatisticsRow total;
    std::vector<Duration> busy(lanes.size());
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      if ((!shown.empty() && !shown[l]) || lanes[l].kind == RunLaneKind::engine) continue;
      std::vector<std::pair<Time, Time>> stretches;
      for (const Span& span : spans_of(*run, lanes[l])) {
        if (!range.overlaps(span.begin, span.end)) continue;
        const Time from = std::max(span.begin, range.begin), to = std::min(span.end, range.end);
        stretches.emplace_back(from, to);
        for (StatisticsRow* row : {&expected[name_of_span(*run, span, key)], &total}) {
          ++row->count;
          (span.call ? row->call : row->work) += to - from;
        }
      }
      std::sort(stretches.begin(), stretches.end());
      Time reached = range.begin;
      for (const auto& [from, to] : stretches) {
        if (to > reached) busy[l] += to - std::max(from, reached);
        reached = std::max(reached, to);
      }
    }
    const SelectionStatistics found = statistics(open, range, key, shown, {});
    EXPECT_EQ(found.range, range);
    ASSERT_EQ(found.rows.size(), expected.size());
    for (const StatisticsRow& row : found.rows) {
      ASSERT_TRUE(expected.contains(row.name)) << row.name;
      EXPECT_EQ(row.count, expected[row.name].count) << row.name;
      EXPECT_EQ(row.work, expected[row.name].work) << row.name;
      EXPECT_EQ(row.call, expected[row.name].call) << row.name;
    }
    EXPECT_EQ(found.total.count, total.count);
    EXPECT_EQ(found.total.work, total.work);
    EXPECT_EQ(found.total.call, total.call);
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      if (lanes[l].kind == RunLaneKind::engine) continue;
      EXPECT_EQ(found.busy[l], busy[l]) << lanes[l].name;
    }
    for (std::size_t i = 1; i < found.rows.size(); ++i) EXPECT_GE(found.rows[i - 1].work, found.rows[i].work);
  }
}

TEST(SelectionStatisticsTest, TheLongestIsUncutAndOfTheWork) {
  const auto run = paged_run();
  const OpenRun open = opened(run);
  Duration longest{};
  for (OpId id = 0; id < run->trace->ops.size(); ++id)
    if (run->result.records[id].start != kNever)
      longest = std::max(longest, run->result.records[id].end - run->result.records[id].start);
  for (const MoveRecord& move : run->result.moves) longest = std::max(longest, move.end - move.start);
  EXPECT_EQ(statistics(open, open.whole(), StatisticsKey::kind, {}, {}).total.longest, longest);
}

TEST(SelectionStatisticsTest, CanBeCancelled) {
  const OpenRun open = opened(paged_run());
  EXPECT_THROW(statistics(open, open.whole(), StatisticsKey::op, {}, [](double) { return false; }), LoadCancelled);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
