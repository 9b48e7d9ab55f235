// Does the viewer show of real captures what is in them? Its models over the run file, against the whole run in memory.
//
// Numbers are worked out here from Run alone, by going through all of it; no tolerance: the viewer rounds nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "gui/drawing/canvas_drawing.h"
#include "gui/model/details.h"
#include "gui/model/live_set.h"
#include "gui/model/op_search.h"
#include "gui/model/peak_explanation.h"
#include "gui/model/run_comparison.h"
#include "gui/model/selection_statistics.h"
#include "gui/model/storage_name.h"
#include "models/hw/machine_file.h"
#include "models/workload/import/kineto_step.h"
#include "models/workload/import/nsys_import.h"
#include "models/workload/import/rank_join.h"
#include "models/workload/import/snapshot_step.h"
#include "sim/ranks.h"
#include "sim/scale.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shared_data.h"
#include "traces/run/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace {

struct Capture {
  const char* name;
  const char* machine;
  Trace (*import)(const std::filesystem::path& traces);
  const char* word;  // that some of its ops bear
};
void PrintTo(const Capture& capture, std::ostream* out) { *out << capture.name; }

Trace dlrm(const std::filesystem::path& traces) {
  std::vector<ImportedStep> steps;
  for (int r = 0; r < 4; ++r) {
    const KinetoCapture file = read_kineto(traces / "dlrm_8xv100" / fmt::format("rank{}.kineto.json.gz", r));
    steps.push_back(step_of(import_kineto(file), file));
  }
  return joined_steps(std::move(steps)).trace;
}

const Capture kCaptures[] = {
    {"vgg13", "h100-sxm-80gb",
     [](const std::filesystem::path& t) { return import_kineto(t / "kineto/vgg13_h100_bs512_train.json", {}).trace; },
     "CONV"},
    {"resnet50", "v100-sxm2-32gb",
     [](const std::filesystem::path& t) {
       return import_kineto(t / "kineto/resnet50_v100_bs32_2021.json.gz", {}).trace;
     },
     "gemm"},
    {"dlrm", "v100-sxm2-32gb", dlrm, "nccl"},
    {"nsys", "a100-sxm-40gb",
     [](const std::filesystem::path& t) { return import_nsys(t / "nsys/lm_small_train_a100.sqlite", {}).trace; },
     "GeMM"},
    {"snapshot", "a100-sxm-40gb",
     [](const std::filesystem::path& t) {
       return import_snapshot(t / "snapshots/lm_small_ctx100_train_from_empty.pickle").trace;
     },
     "storage 7"},
};

// One run file per capture for all tests of this program.
struct Opened {
  std::shared_ptr<const memwall::Run> run;  // in memory, as simulated
  OpenRun shown;                            // from the file, as the viewer opens it
};

const Opened& opened(const Capture& capture) {
  static const ScratchFolder folder;
  static std::map<std::string, Opened> all;
  const auto found = all.find(capture.name);
  if (found != all.end()) return found->second;
  const Trace trace = capture.import(*shared_data() / "traces");
  Opened made;
  made.run = std::make_shared<const memwall::Run>(simulate_and_record(trace, load_machine(capture.machine), {}));
  const auto path = folder / fmt::format("{}.h5", capture.name);
  write_run(*made.run, path);
  made.shown = open_in_viewer(path.string());
  made.shown.history = ResidencyHistory::load(*made.shown.source, {});
  made.shown.analysis = analyse(*made.shown.source, {});
  return all.emplace(capture.name, std::move(made)).first->second;
}

class ViewerCaptures : public testing::TestWithParam<Capture> {
 protected:
  void SetUp() override {
    if (!shared_data()) GTEST_SKIP() << "the folder of captures is absent; set MEMWALL_SHARED";
    open_ = &opened(GetParam());
  }
  const memwall::Run& run() const { return *open_->run; }
  const OpenRun& shown() const { return open_->shown; }
  const Trace& trace() const { return open_->run->trace; }
  const OpRecord& record(OpId id) const { return open_->run->result.records[id]; }

  // Three zooms: all of it, the middle tenth, a thousandth of it.
  std::vector<TimeRange> zooms() const {
    const Duration whole = run().result.end;
    std::vector<TimeRange> ranges{{Time{}, whole}};
    for (const std::int64_t part : {10, 1000}) ranges.push_back({whole / 2, whole / 2 + whole / part});
    return ranges;
  }

 private:
  const Opened* open_ = nullptr;
};

struct Slice {
  Time begin{}, end{};
  OpId op = kNoOp;
  auto operator<=>(const Slice&) const = default;
};

bool touches(const Slice& slice, TimeRange range) { return slice.begin <= range.end && slice.end >= range.begin; }

// What stands in a thread's or a stream's lane, by going through all ops.
std::vector<Slice> slices_of(const memwall::Run& run, const RunLane& lane) {
  std::vector<Slice> slices;
  for (OpId id = 0; id < run.trace.ops.size(); ++id) {
    const Op& op = run.trace.ops[id];
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

TEST_P(ViewerCaptures, FromAfarALaneIsAsBusyAsItsSpans) {
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
  std::vector<OpId> ops(run.trace.ops.size());
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

// --- words ---

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

TEST_P(ViewerCaptures, SearchFindsWhatBearsTheWord) {
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

TEST_P(ViewerCaptures, TheCanvasIsDrawnWholeOnceItsBlocksAreThere) {
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
TEST_P(ViewerCaptures, ThePointerSaysWhatEveryInstantGoesTo) {
  CanvasState state;
  state.runs = {shown()};
  state.rows = RowList::of(state.runs);
  state.viewport = Viewport(state.whole(), 1000);
  const RunAnalysis& analysis = *shown().analysis;
  std::size_t rank = 0;
  for (std::size_t r = 1; r < analysis.classes.size(); ++r)
    if (analysis.path_of(r).size() > analysis.path_of(rank).size()) rank = r;
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

TEST_P(ViewerCaptures, AgainstTheSameWithSlowerKernelsEveryOpHasACounterpart) {
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

INSTANTIATE_TEST_SUITE_P(Captures, ViewerCaptures, testing::ValuesIn(kCaptures),
                         [](const testing::TestParamInfo<Capture>& c) { return std::string(c.param.name); });

}  // namespace
}  // namespace memwall::gui
