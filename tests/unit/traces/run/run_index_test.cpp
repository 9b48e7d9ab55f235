// Do lanes, cells and blocks say what the run's ops say, counted one by one?
#include "traces/run/run_index.h"

#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "tests/support/handmade_run.h"
#include "tests/support/varied_runs.h"
#include "traces/run/export/export_lanes.h"
#include "traces/run/lane_cells.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A bucket by its definition: every picosecond looked at on its own. For short runs.
struct SlowBucket {
  std::int64_t busy = 0;
  std::uint64_t begins = 0;
  std::map<SpanCategory, std::int64_t> words;
  std::map<WaitReason, std::int64_t> stalls;
  WaitReason before = WaitReason::none;
};

template <class Key>
Key most_of(const std::map<Key, std::int64_t>& times, Key none) {
  Key best = none;
  std::int64_t most = 0;
  for (const auto& [key, time] : times)
    if (time > most) {
      best = key;
      most = time;
    }
  return best;
}

std::vector<SlowBucket> slow_buckets(const std::vector<LaneSpan>& spans, std::int64_t end, std::int64_t width) {
  std::vector<SlowBucket> buckets(static_cast<std::size_t>(end / width + 1));
  for (std::int64_t t = 0; t < end; ++t) {
    SlowBucket& bucket = buckets[static_cast<std::size_t>(t / width)];
    const LaneSpan* covering = nullptr;  // of those that cover t, the one that ends last (of equals, the later)
    const LaneSpan* next = nullptr;
    for (const LaneSpan& span : spans) {
      if (span.begin.count() <= t && t < span.end.count() && (!covering || span.end >= covering->end)) covering = &span;
      if (span.begin.count() > t && (!next || span.begin < next->begin)) next = &span;
    }
    if (covering) {
      ++bucket.busy;
      ++bucket.words[covering->category];
    } else if (next && next->reason != WaitReason::none) {
      ++bucket.stalls[next->reason];
    }
  }
  for (const LaneSpan& span : spans) {
    SlowBucket& bucket = buckets[static_cast<std::size_t>(span.begin.count() / width)];
    if (bucket.begins++ == 0) bucket.before = span.reason;
  }
  return buckets;
}

void expect_cells(const std::vector<LaneSpan>& spans, std::int64_t end) {
  LaneCellBuilder builder(spans.size(), Time(end));
  for (const LaneSpan& span : spans) builder.add(span);
  const std::uint8_t base = builder.base_log2(), levels = builder.levels();
  const auto cells = builder.finish();
  ASSERT_EQ(cells.size(), levels);
  for (std::uint8_t level = 0; level < levels; ++level) {
    const auto expected = slow_buckets(spans, end, std::int64_t{1} << (base + level));
    if (level + 1 == levels) {
      ASSERT_EQ(expected.size(), 1u);
    }
    std::size_t at = 0;
    for (std::uint32_t b = 0; b < expected.size(); ++b) {
      const SlowBucket& bucket = expected[b];
      if (bucket.busy == 0 && bucket.begins == 0) continue;
      ASSERT_LT(at, cells[level].size());
      const LaneCell& cell = cells[level][at++];
      ASSERT_EQ(cell.bucket, b);
      EXPECT_EQ(cell.busy.count(), bucket.busy) << "level " << int{level} << " bucket " << b;
      EXPECT_EQ(cell.begins, bucket.begins);
      EXPECT_TRUE(bucket.busy == 0 || cell.category == most_of(bucket.words, SpanCategory::compute));
      EXPECT_EQ(cell.stall, most_of(bucket.stalls, WaitReason::none)) << "level " << int{level} << " bucket " << b;
      EXPECT_EQ(cell.before, bucket.before);
    }
    EXPECT_EQ(at, cells[level].size());
  }
}

std::vector<LaneSpan> random_spans(std::uint64_t seed, int count, std::int64_t end, bool overlap) {
  std::mt19937_64 random(seed);
  std::vector<LaneSpan> spans;
  std::int64_t at = 0;
  for (int i = 0; i < count && at < end; ++i) {
    const auto length = static_cast<std::int64_t>(random() % 12);
    spans.push_back({Time(at), Time(std::min(end, at + length)), static_cast<SpanCategory>(random() % kSpanCategories),
                     static_cast<WaitReason>(random() % kWaitReasons)});
    at = overlap ? at + static_cast<std::int64_t>(random() % 6)
                 : spans.back().end.count() + static_cast<std::int64_t>(random() % 3 == 0 ? random() % 40 : 0);
  }
  return spans;
}

TEST(LaneCells, AreWhatEveryInstantSays) {
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    expect_cells(random_spans(seed, static_cast<int>(1 + seed * 3), 700, false), 700);
}

TEST(LaneCells, CountInstantsOfOverlappingSpansOnce) {
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    expect_cells(random_spans(seed, static_cast<int>(1 + seed * 3), 500, true), 500);
}

TEST(LaneCells, HoldSpansOfNoLengthAndAtTheEnd) {
  expect_cells({{Time(0), Time(0), SpanCategory::host, WaitReason::none},
                {Time(63), Time(63), SpanCategory::copy, WaitReason::launch},
                {Time(64), Time(64), SpanCategory::copy, WaitReason::event}},
               64);
  EXPECT_EQ(LaneCellBuilder(0, Time(100)).levels(), 0);
  EXPECT_EQ(LaneCellBuilder(3, Time(0)).levels(), 0);
}

TEST(RunIndex, NamesLanesAsTheExportsDo) {
  const memwall::Run run = gpt_run(2);
  const RunIndex index = build_run_index(run);
  const ExportLanes exported(run);
  ASSERT_EQ(index.lanes.size(), exported.lanes().size());
  for (std::size_t i = 0; i < index.lanes.size(); ++i) EXPECT_EQ(index.lanes[i].name, exported.lanes()[i].name);
}

// Whatever stands in the lanes stands in blocks and cells: numbers, first begins and last ends.
void expect_adds_up(const memwall::Run& run) {
  const RunIndex index = build_run_index(run);
  std::vector<std::uint64_t> spans(index.lanes.size());
  ExportLanes(run).for_each([&](const ExportSlice& slice) {
    if (slice.lane < run.trace->threads.size() + run.trace->streams.size()) ++spans[slice.lane];
  });
  for (std::size_t i = 0; i < index.lanes.size(); ++i) {
    const RunLane& lane = index.lanes[i];
    const bool has_slices = i < run.trace->threads.size() + run.trace->streams.size();
    EXPECT_TRUE(!has_slices || lane.spans == spans[i]) << lane.name;
    std::uint64_t in_blocks = 0;
    for (std::size_t b = 0; b < index.blocks[i].size(); ++b) {
      in_blocks += index.blocks[i][b].spans;
      EXPECT_LE(index.blocks[i][b].begin, index.blocks[i][b].end);
      EXPECT_TRUE(b == 0 || index.blocks[i][b - 1].block < index.blocks[i][b].block);
    }
    EXPECT_EQ(in_blocks, lane.spans);
    ASSERT_EQ(index.cells[i].size(), lane.levels);
    for (const auto& level : index.cells[i]) {
      std::uint64_t begins = 0;
      for (const LaneCell& cell : level) begins += cell.begins;
      EXPECT_EQ(begins, lane.spans) << lane.name;
    }
  }
}

// Blocks against every slice of threads and streams, over more than one block.
TEST(RunIndex, SaysFromWhenToWhenABlockLasts) {
  const memwall::Run run = gpt_run(700);
  ASSERT_GT(run.trace->ops.size(), 2 * kSpanBlock);
  const RunIndex index = build_run_index(run);
  std::map<std::pair<std::uint32_t, std::uint32_t>, LaneBlock> expected;  // by lane and block
  ExportLanes(run).for_each([&](const ExportSlice& slice) {
    if (slice.lane >= run.trace->threads.size() + run.trace->streams.size()) return;
    const std::uint32_t block = slice.op / kSpanBlock;
    auto [at, is_new] = expected.insert({{slice.lane, block}, {block, slice.begin, slice.end, 0}});
    at->second.begin = std::min(at->second.begin, slice.begin);
    at->second.end = std::max(at->second.end, slice.end);
    ++at->second.spans;
  });
  for (std::uint32_t lane = 0; lane < run.trace->threads.size() + run.trace->streams.size(); ++lane)
    for (const LaneBlock& block : index.blocks[lane]) {
      const auto found = expected.find({lane, block.block});
      ASSERT_NE(found, expected.end());
      EXPECT_EQ(block.begin, found->second.begin);
      EXPECT_EQ(block.end, found->second.end);
      EXPECT_EQ(block.spans, found->second.spans);
      expected.erase(found);
    }
  EXPECT_TRUE(expected.empty());
}

TEST(RunIndex, AddsUp) {
  expect_adds_up(gpt_run(40));
  for (const NamedRun& named : varied_runs()) {
    SCOPED_TRACE(named.name);
    expect_adds_up(named.run);
  }
}

TEST(RunIndex, FindsWordsAndReasons) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "first", 0, 0, 1, 1, 4, WaitReason::launch);
  hand.device(OpKind::kernel, "second", 0, 1, 2, 8, 16, WaitReason::event);
  hand.op(0).phase = Phase::forward;
  hand.op(1).phase = Phase::backward;
  const RunIndex index = build_run_index(hand.finish());
  const auto& top = index.cells[1].back();
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].busy, microseconds(11));
  EXPECT_EQ(top[0].category, SpanCategory::backward);
  EXPECT_EQ(top[0].stall, WaitReason::event);    // 4 us of it, 1 us of launch
  EXPECT_EQ(top[0].before, WaitReason::launch);  // the gap before the first span
}

TEST(SpanCategory, SaysWhatASpanIs) {
  EXPECT_EQ(work_category(OpKind::kernel, Phase::unknown), SpanCategory::compute);
  EXPECT_EQ(work_category(OpKind::memset, Phase::recompute), SpanCategory::recompute);
  EXPECT_EQ(work_category(OpKind::copy, Phase::backward), SpanCategory::copy);
  EXPECT_EQ(call_category(OpKind::alloc, WaitFor::nothing), SpanCategory::allocator);
  EXPECT_EQ(call_category(OpKind::copy, WaitFor::own_op), SpanCategory::waiting);
  EXPECT_EQ(call_category(OpKind::kernel, WaitFor::nothing), SpanCategory::host);
  EXPECT_EQ(to_string(SpanCategory::waiting), "waiting");
  EXPECT_EQ(to_string(RunLaneKind::engine), "copy engine");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
