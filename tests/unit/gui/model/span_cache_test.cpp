// Are the spans in memory those of the run, lane by lane, and does the cache keep to its budget?
#include "gui/model/span_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gui/model/navigation.h"
#include "sim/error.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/open_run_of.h"
#include "tests/support/test_machine.h"
#include "tests/support/varied_runs.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

std::shared_ptr<const Run> long_run() {
  GptShape shape;
  shape.layers = 8;
  shape.steps = 60;
  shape.launch_cost = microseconds(1);
  return std::make_shared<const memwall::Run>(simulate_and_record(gpt_step(shape), test_machine(), {}));
}

// (begin, end) of the spans of a lane that touch a range, from the whole run.
using Spans = std::multiset<std::pair<Time, Time>>;
Spans by_force(const OpenRun& open, const Run& run, std::uint32_t number, TimeRange range) {
  const RunLane& lane = open.outline().lanes[number];
  Spans spans;
  const auto add = [&](Time begin, Time end) {
    if (range.overlaps(begin, end)) spans.emplace(begin, end);
  };
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    const Op& op = run.trace->ops[id];
    const OpRecord& record = run.result.records[id];
    const bool works = runs_on_device(op.kind) && record.start != kNever;
    if (lane.kind == RunLaneKind::thread && op.thread == lane.index && !op.placed && !op.graph_member)
      add(record.host_start, record.host_end);
    if (lane.kind == RunLaneKind::stream && op.stream == lane.index && works) add(record.start, record.end);
  }
  // Which engine serves a copy is the source's to say.
  for (std::uint32_t block = 0; block * std::uint64_t{kSpanBlock} < run.trace->ops.size(); ++block) {
    const SpanBlock columns = open.source->spans(block);
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (lane.kind == RunLaneKind::engine && columns.engine[i] == number)
        add(columns.begin[i], columns.begin[i] + columns.time[i]);
  }
  for (const MoveRecord& move : run.result.moves)
    if (lane.kind == RunLaneKind::pager && move.from == lane.from && move.to == lane.to) add(move.start, move.end);
  return spans;
}

Spans from_blocks(SpanCache& cache, const RunOutline& outline, std::uint32_t lane, TimeRange range) {
  Spans spans;
  const RunLaneKind kind = outline.lanes[lane].kind;
  const LaneBlockSearch& search = cache.blocks_of(lane);
  const LaneBlockSearch::Part part = search.within(range);
  for (std::size_t i = part.first; i < part.last; ++i) {
    const auto block = cache.load(cache.number_of(lane, search.blocks()[i]));
    const LaneSlice slice = block->slice(lane, kind);
    const auto [first, last] = slice.within(range);
    for (std::size_t s = first; s < last; ++s)
      if (range.overlaps(slice.begin(s), slice.end(s))) spans.emplace(slice.begin(s), slice.end(s));
  }
  return spans;
}

// Every lane of a run, in ranges of all lengths, against the whole run. Returns how many spans were compared.
std::size_t check_every_lane(const std::shared_ptr<const memwall::Run>& run, const std::string& name) {
  const OpenRun open = open_run_of(run);
  const Time end = run->result.end;
  std::size_t seen = 0;
  for (std::uint32_t lane = 0; lane < open.outline().lanes.size(); ++lane) {
    const RunLane& info = open.outline().lanes[lane];
    EXPECT_EQ(by_force(open, *run, lane, open.whole()).size(), info.spans) << name << ": " << info.name;
    for (int part = 0; part <= 8; ++part) {
      const TimeRange range = part == 8 ? open.whole() : TimeRange{end * part / 8, end * part / 8 + end / 50};
      const Spans wanted = by_force(open, *run, lane, range);
      EXPECT_EQ(from_blocks(*open.spans, open.outline(), lane, range), wanted) << name << ": " << info.name;
      seen += wanted.size();
    }
  }
  return seen;
}

TEST(SpanCache, SearchByTimeFindsEverySpanOfEveryLane) {
  const auto run = long_run();
  ASSERT_GT(run->trace->ops.size(), 2 * std::size_t{kSpanBlock}) << "blocks must meet";
  EXPECT_GT(check_every_lane(run, "long"), 10'000u);
  for (const NamedRun& varied : varied_runs())
    check_every_lane(std::make_shared<const memwall::Run>(varied.run), varied.name);
}

TEST(SpanCache, VariedRunsHaveLanesOfAllKinds) {
  std::set<RunLaneKind> kinds;
  for (const NamedRun& varied : varied_runs()) {
    const OpenRun open = open_run_of(std::make_shared<const memwall::Run>(varied.run));
    for (const RunLane& lane : open.outline().lanes)
      if (lane.spans > 0) kinds.insert(lane.kind);
  }
  EXPECT_EQ(kinds.size(), 4u);
}

TEST(SpanCache, FindReadsNothing) {
  const OpenRun open = open_run_of(gpt_step({}), test_machine());
  EXPECT_EQ(open.spans->find(0), nullptr);
  const auto block = open.spans->load(0);
  EXPECT_EQ(open.spans->find(0), block);
  EXPECT_EQ(open.spans->load(0), block) << "read once";
}

TEST(SpanCache, TheLeastRecentlyUsedBlockGoesFirst) {
  const auto run = long_run();
  const OpenRun open = open_run_of(run);
  const std::size_t one = open.spans->load(0)->bytes();
  SpanCache cache(open.source, one * 5 / 2);
  cache.load(0);
  cache.load(1);
  EXPECT_NE(cache.find(0), nullptr);  // now block 1 is the older one
  cache.load(2);
  EXPECT_EQ(cache.find(1), nullptr);
  EXPECT_NE(cache.find(0), nullptr);
  EXPECT_NE(cache.find(2), nullptr);
  SpanCache tiny(open.source, 1);
  const auto kept = tiny.load(0);
  EXPECT_EQ(tiny.find(0), kept) << "what somebody looks at stays";
  tiny.load(1);
  EXPECT_EQ(tiny.find(0), nullptr);
}

TEST(SpanCache, NamesStandBesideTheSpans) {
  const auto run = long_run();
  const OpenRun open = open_run_of(run);
  const auto block = open.spans->load(1);
  for (std::uint16_t i = 0; i < 500; ++i) {
    const Op& op = run->trace->ops[kSpanBlock + i];
    const std::string& name = run->trace->strings[op.name != 0 ? op.name : op.operator_name];
    EXPECT_EQ(block->name_of(i), name.empty() ? to_string(op.kind) : name);
  }
}

// A pager's moves are read in blocks of their own.
TEST(SpanCache, MovesAreBlocksToo) {
  memwall::Run run = simulate_and_record(gpt_step({}), test_machine(), {});
  run.result.moves = {{microseconds(5), microseconds(9), 1, 0, 1, 100, 3},
                      {microseconds(2), microseconds(4), 2, 0, 1, 100, 3},
                      {microseconds(3), microseconds(6), 3, 1, 0, 100, 3}};
  const OpenRun open = open_run_of(std::make_shared<const memwall::Run>(run));
  std::size_t pagers = 0;
  for (std::uint32_t lane = 0; lane < open.outline().lanes.size(); ++lane) {
    const RunLane& info = open.outline().lanes[lane];
    if (info.kind != RunLaneKind::pager) continue;
    ++pagers;
    const Spans spans = from_blocks(*open.spans, open.outline(), lane, {Time{}, microseconds(20)});
    if (info.from == 0) {
      EXPECT_EQ(spans, (Spans{{microseconds(2), microseconds(4)}, {microseconds(5), microseconds(9)}}));
    } else {
      EXPECT_EQ(spans, (Spans{{microseconds(3), microseconds(6)}}));
    }
  }
  EXPECT_EQ(pagers, 2u);
  EXPECT_EQ(open.spans->load(SpanCache::kMoveBlocks)->moves.size(), 3u);
}

// Moves overlap: one that began long ago and goes on must not hide behind short ones that ended since.
TEST(SpanCache, LongSpansAreFoundBehindShortOnesThatBeganLater) {
  memwall::Run run = simulate_and_record(gpt_step({}), test_machine(), {});
  run.result.moves = {{microseconds(0), microseconds(100), 1, 0, 1, 100, 3},
                      {microseconds(1), microseconds(2), 2, 0, 1, 100, 3},
                      {microseconds(3), microseconds(4), 3, 0, 1, 100, 3},
                      {microseconds(50), microseconds(60), 4, 0, 1, 100, 3}};
  const OpenRun open = open_run_of(std::make_shared<const memwall::Run>(run));
  for (std::uint32_t lane = 0; lane < open.outline().lanes.size(); ++lane) {
    if (open.outline().lanes[lane].kind != RunLaneKind::pager) continue;
    const Spans spans = from_blocks(*open.spans, open.outline(), lane, {microseconds(70), microseconds(80)});
    EXPECT_EQ(spans, (Spans{{microseconds(0), microseconds(100)}}));
    return;
  }
  FAIL() << "no pager's lane";
}

TEST(SpanCache, RelationsAreReadWhenAskedForAndNotBefore) {
  const OpenRun open = open_run_of(gpt_step({}), test_machine());
  EXPECT_EQ(open.spans->find_relations(5), nullptr);
  open.spans->load(SpanCache::kRelations);
  const auto relations = open.spans->find_relations(5);
  ASSERT_NE(relations, nullptr);
  EXPECT_EQ(relations->detail.id, 5u);
  // Each follower with the part of it that waited, and for which part: no work waits for what let its call begin.
  ASSERT_FALSE(relations->followers.empty());
  for (const OpRelations::Follower& follower : relations->followers)
    EXPECT_EQ(cause_of(open.source->op(follower.op), {0, follower.op, follower.call}), (OpRef{0, 5, follower.of_call}));
}

TEST(LevelOfDetail, CellsOfPiecesAreThoseOfTheSource) {
  const OpenRun open = open_run_of(long_run());
  for (std::uint32_t lane = 0; lane < open.outline().lanes.size(); ++lane) {
    for (std::uint8_t level = 0; level < open.outline().lanes[lane].levels; ++level) {
      std::uint64_t begins = 0, wanted = 0;
      for (const auto& piece : open.spans->level_of_detail().cells(lane, level, 0, 1 << 17))
        for (const LaneCell& cell : *piece) begins += cell.begins;
      for (const LaneCell& cell : open.source->cells(lane, level, 0, 1 << 17)) wanted += cell.begins;
      EXPECT_EQ(begins, wanted);
      EXPECT_EQ(wanted, open.outline().lanes[lane].spans);
    }
  }
}

TEST(LevelOfDetail, KeepsToItsBudget) {
  const OpenRun open = open_run_of(long_run());
  const LevelOfDetail detail(open.source, 200'000);
  std::size_t most = 0;
  for (std::uint64_t piece = 0; piece < 64; ++piece) {
    detail.cells(0, 0, piece * LevelOfDetail::kPiece, (piece + 1) * LevelOfDetail::kPiece);
    most = std::max(most, detail.resident_bytes());
  }
  EXPECT_LE(detail.resident_bytes(), 200'000u);
  EXPECT_GT(most, 100'000u) << "and uses it";
}

TEST(LevelOfDetail, RatesCoverTheRangeWhileItMoves) {
  const OpenRun open = open_run_of(long_run());
  const Time end = open.whole().end;
  for (int i = 0; i < 20; ++i) {
    const TimeRange range{end * i / 25, end * i / 25 + end / 9};
    const auto points = open.spans->level_of_detail().memory(0, range, 100);
    ASSERT_FALSE(points->empty());
    EXPECT_LE(points->front().time, range.begin);
    const auto exact = open.source->memory(0, range.begin, range.end, 100'000);
    Bytes highest = 0, found = 0;
    for (const MemoryHigh& point : exact) highest = std::max(highest, point.allocated);
    for (const MemoryHigh& point : *points) found = std::max(found, point.allocated);
    EXPECT_GE(found, highest);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
