// Does the viewer show of real captures what is in them? Its models over the run file, against the whole run in memory.
//
// Numbers are worked out here from Run alone, by going through all of it; no tolerance: the viewer rounds nothing.
#include <gtest/gtest.h>

#include <algorithm>

#include "gui/model/details.h"
#include "gui/model/live_set.h"
#include "gui/model/peak_explanation.h"
#include "gui/model/selection_statistics.h"
#include "sim/trace/ranks.h"
#include "tests/support/viewer_captures.h"
#include "traces/run/analysis/compare.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

struct Slice {
  Time begin{}, end{};
  OpId op = kNoOp;
  auto operator<=>(const Slice&) const = default;
};

bool touches(const Slice& slice, TimeRange range) { return slice.begin <= range.end && slice.end >= range.begin; }

// What stands in a thread's or a stream's lane, by going through all ops.
std::vector<Slice> slices_of(const memwall::Run& run, const RunLane& lane) {
  std::vector<Slice> slices;
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    const Op& op = run.trace->ops[id];
    const OpRecord& r = run.result.records[id];
    if (lane.kind == RunLaneKind::stream && r.start != kNever && op.stream == lane.index)
      slices.push_back({r.start, r.end, id});
    if (lane.kind == RunLaneKind::thread && !op.placed && !op.graph_member && op.thread == lane.index)
      slices.push_back({r.host_start, r.host_end, id});
  }
  std::sort(slices.begin(), slices.end());
  return slices;
}

Duration covered(const std::vector<Slice>& slices) {
  Duration sum{};
  Time reach{};
  for (const Slice& slice : slices) {
    sum += std::max(Duration{}, slice.end - std::max(slice.begin, reach));
    reach = std::max(reach, slice.end);
  }
  return sum;
}

TEST_P(ViewerCaptures, EveryLaneShowsTheSpansOfTheRunAtAnyZoom) {
  std::uint64_t checked = 0;
  for (std::uint32_t l = 0; l < shown().outline().lanes.size(); ++l) {
    const RunLane& lane = shown().outline().lanes[l];
    if (lane.kind != RunLaneKind::stream && lane.kind != RunLaneKind::thread) continue;
    const std::vector<Slice> expected = slices_of(run(), lane);
    ASSERT_EQ(lane.spans, expected.size()) << lane.name;
    for (const TimeRange range : zooms()) {
      std::vector<Slice> in_range, found;
      std::copy_if(expected.begin(), expected.end(), std::back_inserter(in_range),
                   [&](const Slice& s) { return touches(s, range); });
      const LaneBlockSearch& search = shown().spans->blocks_of(l);
      const LaneBlockSearch::Part part = search.within(range);
      for (std::size_t b = part.first; b < part.last; ++b) {
        const auto block = shown().spans->load(shown().spans->number_of(l, search.blocks()[b]));
        const LaneSlice slice = block->slice(l, lane.kind);
        const auto [first, last] = slice.within(range);
        for (std::size_t i = first; i < last; ++i) {
          const Slice s{slice.begin(i), slice.end(i), block->spans.first + slice.offset(i)};
          if (touches(s, range)) found.push_back(s);
        }
      }
      std::sort(found.begin(), found.end());
      ASSERT_EQ(found.size(), in_range.size()) << lane.name;
      EXPECT_TRUE(found == in_range) << lane.name;
      checked += found.size();
    }
  }
  EXPECT_GT(checked, 1000u);
}

TEST_P(ViewerCaptures, ZoomedOutALaneIsAsBusyAsItsSpans) {
  for (std::uint32_t l = 0; l < shown().outline().lanes.size(); ++l) {
    const RunLane& lane = shown().outline().lanes[l];
    if (lane.kind != RunLaneKind::stream && lane.kind != RunLaneKind::thread) continue;
    const Duration busy = covered(slices_of(run(), lane));
    for (std::uint8_t level = 0; level < lane.levels; ++level) {
      std::uint64_t begins = 0;
      Duration sum{};
      const std::int64_t width = std::int64_t{1} << (lane.base_log2 + level);
      const auto buckets = static_cast<std::uint64_t>(run().result.end.count() / width) + 1;
      for (const LaneCell& cell : shown().source->cells(l, level, 0, buckets)) {
        begins += cell.begins;
        sum += cell.busy;
        EXPECT_LE(cell.busy.count(), width);
      }
      EXPECT_EQ(begins, lane.spans) << lane.name << ", level " << int{level};
      EXPECT_EQ(sum, busy) << lane.name << ", level " << int{level};
    }
  }
}

TEST_P(ViewerCaptures, OccupancyIsThatOfTheRun) {
  for (std::uint32_t tier = 0; tier < run().machine.tiers.size(); ++tier) {
    const std::vector<KindPoint> points = memory_by_kind(run(), static_cast<int>(tier));
    Bytes highest = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].time > run().result.end) break;
      const KindBytes found = shown().history->by_kind(tier, points[i].time);
      if (points.size() < 2000 || i % 101 == 0) {
        for (int k = 0; k < kStorageKinds; ++k)
          ASSERT_EQ(found[static_cast<std::size_t>(k)], points[i].by_kind[k])
              << run().machine.tiers[tier].name << " at " << points[i].time.count() << " ps, "
              << to_string(static_cast<StorageKind>(k));
      }
      Bytes sum = 0;
      for (const Bytes bytes : points[i].by_kind) sum += bytes;
      highest = std::max(highest, sum);
    }
    Bytes shown_highest = 0;
    for (const KindHigh& high : shown().history->highs(tier, shown().whole(), 500)) {
      Bytes sum = 0;
      for (const Bytes bytes : high.bytes) sum += bytes;
      shown_highest = std::max(shown_highest, sum);
    }
    // Within one instant a storage may come before another goes: that is higher than what stands after it.
    EXPECT_GE(shown_highest, highest) << run().machine.tiers[tier].name;
  }
}

TEST_P(ViewerCaptures, WhatLivesAtThePeakIsWhatTheRunSays) {
  const std::vector<Peak> peaks = find_peaks(run());
  for (std::uint32_t tier = 0; tier < peaks.size(); ++tier) {
    const Peak& peak = peaks[tier];
    if (peak.allocated == 0) continue;
    const TierLiveSet found = live_set(shown(), tier, peak.time);
    EXPECT_EQ(found.requested, peak.requested) << run().machine.tiers[tier].name;
    EXPECT_EQ(found.rows.size(), peak.storages);
    EXPECT_EQ(found.by_kind, peak.by_kind);
    Bytes rows = found.untracked;
    for (const LiveRow& row : found.rows) rows += row.bytes;
    EXPECT_EQ(rows, found.requested);
    EXPECT_EQ(found.allocated, peak.allocated);
    ASSERT_GE(found.rows.size(), peak.largest.size());
    for (std::size_t i = 0; i < peak.largest.size(); ++i) {
      EXPECT_EQ(found.rows[i].storage, peak.largest[i].storage);
      EXPECT_EQ(found.rows[i].bytes, peak.largest[i].bytes);
    }
    EXPECT_FALSE(explain_peak(shown(), tier).sentences.empty());
  }
}

// --- time ---

std::vector<OpId> longest_ops(const memwall::Run& run, std::size_t count) {
  std::vector<OpId> ops(run.trace->ops.size());
  for (OpId id = 0; id < ops.size(); ++id) ops[id] = id;
  std::stable_sort(ops.begin(), ops.end(), [&](OpId a, OpId b) { return cost_of(run, a).time > cost_of(run, b).time; });
  ops.resize(std::min(ops.size(), count));
  return ops;
}

TEST_P(ViewerCaptures, DetailsOfTheLongestOpsNameThemAndWhatLetThemBegin) {
  for (const OpId id : longest_ops(run(), 10)) {
    const bool call = record(id).start == kNever;
    const std::vector<DetailSection> sections = details_of(shown(), {0, id, call});
    const std::string text = to_text(sections);
    EXPECT_NE(text.find(std::string(memwall::name_of(run(), id))), std::string::npos) << text;
    const OpId cause = call ? record(id).host_cause : record(id).device_cause;
    if (cause >= trace().ops.size() || cause == id) continue;
    bool named = false;
    for (const DetailSection& section : sections)
      for (const DetailLine& line : section.lines) named = named || (line.op && line.op->op == cause);
    EXPECT_TRUE(named) << "op " << id << " began because of " << cause << ":\n" << text;
  }
}

TEST_P(ViewerCaptures, StatisticsAddUpToTheSummary) {
  const RunSummary summary = summarize(run());
  for (int k = 0; k < kStatisticsKeys; ++k) {
    const SelectionStatistics found = statistics(shown(), shown().whole(), static_cast<StatisticsKey>(k), {}, {});
    Duration work{}, call{};
    std::uint64_t count = 0;
    for (const StatisticsRow& row : found.rows) {
      work += row.work;
      call += row.call;
      count += row.count;
    }
    EXPECT_EQ(work, found.total.work);
    EXPECT_EQ(call, found.total.call);
    EXPECT_EQ(count, found.total.count);
    EXPECT_EQ(work, summary.origin.total()) << "device time, by " << to_string(static_cast<StatisticsKey>(k));
    ASSERT_EQ(found.busy.size(), shown().outline().lanes.size());
    for (std::size_t l = 0; l < found.busy.size(); ++l) {
      const RunLane& lane = shown().outline().lanes[l];
      if (lane.kind == RunLaneKind::stream || lane.kind == RunLaneKind::thread) {
        EXPECT_EQ(found.busy[l], covered(slices_of(run(), lane))) << lane.name;
      }
    }
  }
}

TEST_P(ViewerCaptures, ThePathAndTheClassesAddUp) {
  const RunAnalysis& analysis = *shown().analysis;
  Time at{};
  ClassTimes of_path;
  for (const PathSegment& segment : analysis.path) {
    ASSERT_EQ(segment.begin, at);
    at = segment.end;
    of_path[segment.time_class] += segment.end - segment.begin;
  }
  EXPECT_EQ(at, run().result.end);
  const RunSummary summary = summarize(run());
  EXPECT_EQ(of_path.by_class, summary.path.by_class);
  EXPECT_EQ(analysis.summary.times.by_class, summary.times.by_class);
  const std::vector<Time> ends = rank_ends(run());
  ASSERT_EQ(analysis.classes.size(), ends.size());
  std::size_t segments = 0;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const ClassTimes times = analysis.class_sums[rank].within(analysis.classes[rank], Time{}, ends[rank]);
    EXPECT_EQ(times.total(), ends[rank]);
    segments += analysis.path_of(rank).size();
  }
  EXPECT_EQ(segments, analysis.path.size() -
                          (analysis.path.empty() || analysis.path.front().op != kNoOp || ends.size() == 1 ? 0 : 1));
  for (const OpId id : longest_ops(run(), 1000)) {
    const bool on = std::any_of(analysis.path.begin(), analysis.path.end(), [&](const PathSegment& s) {
      return s.op == id && s.part != PathPart::gap && s.part != PathPart::latency;
    });
    ASSERT_EQ(analysis.on_path[id], on) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Captures, ViewerCaptures, testing::ValuesIn(viewer_captures()),
                         [](const testing::TestParamInfo<ViewerCapture>& c) { return std::string(c.param.name); });

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
