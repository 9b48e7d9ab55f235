// Do four ranks of a real job, captured each by itself, replay together as they ran: each in its own time, every
// collective decided by whoever arrives last, and a slowed rank holding up all others?
//
// DLRM on 8 V100 of one host, ranks 0 to 3 present. Tolerances (why): 1 % of a rank's time is what a developer would
// call the same; ends of collectives agree within 7 us across the captured ranks (one clock, 1-us records). Controls:
// without rendezvous nobody waits, a wrong match breaks ends or cannot run, a cut window leaves the rest matched.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/hw/machine_file.h"
#include "models/workload/import/execution_trace/timed_step.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/ranks/collective_rendezvous.h"
#include "models/workload/import/ranks/job_files.h"
#include "models/workload/import/ranks/rank_join.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "sim/trace/scale.h"
#include "tests/support/shared_data.h"
#include "models/workload/import/kineto/kineto_step.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::size_t kRanks = 4;

struct Captured {
  TimedCapture file;
  ImportedTrace alone;  // with captured times
};

std::vector<Captured> captured_ranks() {
  std::vector<Captured> ranks;
  for (std::size_t r = 0; r < kRanks; ++r) {
    Captured c{read_kineto(*shared_data() / "traces/dlrm_8xv100" / fmt::format("rank{}.kineto.json.gz", r)), {}};
    c.alone = import_timed_capture(c.file);
    ranks.push_back(std::move(c));
  }
  return ranks;
}

std::vector<ImportedStep> steps_of(const std::vector<Captured>& ranks) {
  std::vector<ImportedStep> steps;
  for (const Captured& rank : ranks) steps.push_back(step_of(rank.alone, rank.file));
  return steps;
}

SimulationResult replay(const Trace& trace) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, load_machine("v100-sxm2-32gb"), options);
}

// Ends of each rank's program, as a duration from its own start.
std::vector<Duration> times(const Trace& trace, const SimulationResult& result) {
  std::vector<Time> first(rank_count(trace), kNever), last(rank_count(trace));
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const std::uint16_t rank = rank_of(trace, trace.ops[id]);
    const OpRecord& r = result.records[id];
    if (r.host_start != kNever && !trace.ops[id].placed) first[rank] = std::min(first[rank], r.host_start);
    if (r.start != kNever) first[rank] = std::min(first[rank], r.start);
    if (r.host_end != kNever) last[rank] = std::max(last[rank], r.host_end);
    if (r.end != kNever) last[rank] = std::max(last[rank], r.end);
  }
  std::vector<Duration> all;
  for (std::size_t r = 0; r < first.size(); ++r) all.push_back(last[r] - first[r]);
  return all;
}

std::vector<Time> ends(const Trace& trace, const SimulationResult& result) {
  std::vector<Time> last(rank_count(trace));
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    Time& end = last[rank_of(trace, trace.ops[id])];
    if (result.records[id].host_end != kNever) end = std::max(end, result.records[id].host_end);
    if (result.records[id].end != kNever) end = std::max(end, result.records[id].end);
  }
  return last;
}

double percent(Duration now, Duration before) { return 100 * (to_seconds(now) / to_seconds(before) - 1); }

class RankReplay : public testing::Test {
 protected:
  void SetUp() override {
    if (!shared_data()) GTEST_SKIP() << "the folder of captures is not there";
    ranks_ = captured_ranks();
    joined_ = joined_steps(steps_of(ranks_));
  }

  // The op of a rank's own trace in the joined one: programs stand one after the other.
  OpId in_joined(std::size_t rank, OpId op) const {
    for (std::size_t r = 0; r < rank; ++r) op += static_cast<OpId>(ranks_[r].alone.trace.ops.size());
    return op;
  }

  std::vector<Captured> ranks_;
  ImportedStep joined_;
};

TEST_F(RankReplay, EveryCollectiveMeetsAndTheJobIsKnown) {
  const Trace& t = joined_.trace;
  EXPECT_EQ(rank_count(t), kRanks);
  EXPECT_EQ(t.job_ranks, 8u);
  ASSERT_EQ(t.groups.size(), 1u);
  EXPECT_EQ(t.groups[0].ranks, 8u);
  std::map<std::uint32_t, std::vector<OpId>> rendezvous;
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (t.ops[id].kind == OpKind::collective) rendezvous[t.ops[id].target].push_back(id);
  EXPECT_EQ(rendezvous.size(), 8u);
  for (const auto& [number, ops] : rendezvous) {
    ASSERT_NE(number, kNoRendezvous);
    ASSERT_EQ(ops.size(), kRanks);
    for (const OpId op : ops) EXPECT_EQ(t.ops[op].duration, t.ops[ops.front()].duration);
  }
  const auto absent = std::find_if(joined_.decisions.begin(), joined_.decisions.end(),
                                   [](const Decision& d) { return d.subject == "ranks of the job"; });
  ASSERT_NE(absent, joined_.decisions.end());
  EXPECT_EQ(absent->covered, 4u);
  EXPECT_EQ(absent->of, 8u);
  EXPECT_NE(absent->sentence.find("absent: 4, 5, 6, 7"), std::string::npos) << absent->sentence;
}

TEST_F(RankReplay, EachRankTakesItsCapturedTime) {
  const std::vector<Duration> replayed = times(joined_.trace, replay(joined_.trace));
  for (std::size_t r = 0; r < kRanks; ++r) {
    const double error = percent(replayed[r], ranks_[r].alone.captured.total);
    RecordProperty(fmt::format("rank{}_percent", r), fmt::format("{:.3f}", error));
    EXPECT_LT(std::fabs(error), 1) << "rank " << r << ": captured " << to_seconds(ranks_[r].alone.captured.total) * 1e3
                                   << " ms, replayed " << to_seconds(replayed[r]) * 1e3;
  }
}

TEST_F(RankReplay, TheLastArriverDecidesEachCollective) {
  const SimulationResult result = replay(joined_.trace);
  double largest_ratio = 0;
  for (std::size_t k = 0; k < 8; ++k) {
    Duration shortest = kNever, longest{};
    std::size_t last = 0;
    Time first_end = kNever, last_end{};
    std::vector<OpId> ops;
    for (std::size_t r = 0; r < kRanks; ++r) {
      const ImportedTrace& t = ranks_[r].alone;
      const OpId op = ranks_[r].alone.trace.ops.empty() ? 0 : [&] {
        std::size_t seen = 0;
        for (OpId id = 0;; ++id)
          if (t.trace.ops[id].kind == OpKind::collective && seen++ == k) return id;
      }();
      ops.push_back(in_joined(r, op));
      // One clock: 1694128201 s is common to the files.
      const Time end =
          nanoseconds(ranks_[r].file.first_event_ns % 1'000'000'000'000) + t.captured.origin + t.captured.end[op];
      first_end = std::min(first_end, end);
      last_end = std::max(last_end, end);
      const Duration took = t.captured.end[op] - t.captured.start[op];
      longest = std::max(longest, took);
      if (took < shortest) shortest = took, last = r;
    }
    EXPECT_LE(last_end - first_end, microseconds(7)) << "collective " << k;
    largest_ratio = std::max(largest_ratio, to_seconds(longest) / to_seconds(shortest));
    Time latest{};
    for (const OpId op : ops) {
      latest = std::max(latest, result.records[op].start);
      EXPECT_EQ(result.records[op].end, result.records[ops[0]].end) << "collective " << k;
    }
    EXPECT_EQ(result.records[ops[0]].end, latest + shortest) << "collective " << k;
    // Who came last in the capture does so in the replay; where two were within 60 us of each other, one of them.
    EXPECT_LE(latest - result.records[ops[last]].start, microseconds(60)) << "collective " << k << ", rank " << last;
  }
  EXPECT_GT(largest_ratio, 14);
  EXPECT_LT(largest_ratio, 16);
}

// What a rank computes, on its host and its GPU, takes 10 % longer. This program is bound by its hosts: kernels are 1.0
// to 1.2 ms of 13 to 20 ms per rank, so these alone must become ten times longer before anyone notices.
TEST_F(RankReplay, OneSlowedRankDelaysAll) {
  const SimulationResult together = replay(joined_.trace);
  const std::vector<Time> before = ends(joined_.trace, together);
  OpId last_collective = 0;
  for (OpId id = 0; id < joined_.trace.ops.size(); ++id)
    if (joined_.trace.ops[id].kind == OpKind::collective) last_collective = id;
  const auto slowed = [&](std::uint32_t rank, double kernels, double host) {
    ScaleFactors factors;
    factors.kernels = kernels;
    factors.host = host;
    factors.rank = rank;
    const Trace slower = scaled(joined_.trace, factors);
    const SimulationResult result = replay(slower);
    std::vector<Duration> later;
    for (std::size_t r = 0; r < kRanks; ++r) later.push_back(ends(slower, result)[r] - before[r]);
    later.push_back(result.records[last_collective].end - together.records[last_collective].end);
    std::string line;
    for (const Duration d : later) line += fmt::format(" {:.1f}", to_microseconds(d));
    RecordProperty(fmt::format("rank{}_kernels{}_host{}_us", rank, kernels, host), line);
    return later;
  };
  // Rank 2 is the last arriver of five collectives of eight: whoever waits for it ends later.
  for (const Duration later : slowed(2, 1.1, 1.1)) EXPECT_GT(later, microseconds(500));
  // The others had waited for it: they have slack, but the last collective, which all share, is later by each.
  for (std::uint32_t rank = 0; rank < kRanks; ++rank)
    EXPECT_GT(slowed(rank, 1.1, 1.1).back(), microseconds(300)) << "rank " << rank;
  for (const Duration later : slowed(2, 1.1, 1)) EXPECT_EQ(later, Duration{});  // a known gap: hidden by the hosts
  for (std::uint32_t rank = 0; rank < kRanks; ++rank)
    for (const Duration later : slowed(rank, 10, 1)) EXPECT_GT(later, microseconds(300)) << "rank " << rank;
}

// --- controls ---

TEST_F(RankReplay, WithoutMeetingsNobodyElseIsDelayed) {
  Trace apart = joined_.trace;
  for (Op& op : apart.ops)
    if (op.kind == OpKind::collective) op.target = kNoRendezvous;
  const std::vector<Time> before = ends(apart, replay(apart));
  ScaleFactors factors;
  factors.kernels = factors.host = 1.1;
  factors.rank = 2;
  const Trace slower = scaled(apart, factors);
  const std::vector<Time> after = ends(slower, replay(slower));
  for (std::size_t r = 0; r < kRanks; ++r) {
    if (r == 2)
      EXPECT_GT(after[r], before[r]);
    else
      EXPECT_EQ(after[r], before[r]) << "rank " << r;
  }
  // And ranks that waited end too early: their collectives are their own alone.
  const std::vector<Time> together = ends(joined_.trace, replay(joined_.trace));
  EXPECT_GT(together[1] - before[1], microseconds(5000));
}

TEST_F(RankReplay, AWrongMatchIsSeen) {
  // Rank 1 is said to be one collective further than the others: circles of waiting, or ends that are wrong.
  Trace wrong = joined_.trace;
  std::vector<OpId> of_rank;
  for (OpId id = 0; id < wrong.ops.size(); ++id)
    if (wrong.ops[id].kind == OpKind::collective && rank_of(wrong, wrong.ops[id]) == 1) of_rank.push_back(id);
  std::swap(wrong.ops[of_rank[2]].target, wrong.ops[of_rank[3]].target);  // both all-to-alls
  EXPECT_THROW(replay(wrong), InputError);
}

TEST_F(RankReplay, ACutWindowLeavesTheRestMatched) {
  // Rank 1's profiler stopped before the last two collectives ran, and began after the first.
  const TimedCapture& whole = ranks_[1].file;
  std::vector<Time> ends_of_collectives;
  for (const CapturedDeviceOp& op : whole.device_ops)
    if (whole.text(op.name).starts_with("nccl")) ends_of_collectives.push_back(op.end());
  ASSERT_EQ(ends_of_collectives.size(), 8u);
  std::sort(ends_of_collectives.begin(), ends_of_collectives.end());
  const auto outside = [&](const auto& event) {
    return event.start < ends_of_collectives[0] || event.start > ends_of_collectives[5];
  };
  std::vector<Captured> cut = ranks_;
  std::erase_if(cut[1].file.device_ops, outside);
  std::erase_if(cut[1].file.calls, outside);
  cut[1].alone = import_timed_capture(cut[1].file);
  const ImportedStep joined = joined_steps(steps_of(cut));
  std::size_t met = 0, alone = 0;
  for (const Op& op : joined.trace.ops) {
    if (op.kind != OpKind::collective) continue;
    if (rank_of(joined.trace, op) == 1) ++(op.target == kNoRendezvous ? alone : met);
  }
  EXPECT_EQ(met, 5u);
  EXPECT_EQ(alone, 0u);
  const std::vector<Duration> replayed = times(joined.trace, replay(joined.trace));
  for (const std::size_t r : {0u, 2u, 3u})
    EXPECT_LT(std::fabs(percent(replayed[r], ranks_[r].alone.captured.total)), 2) << "rank " << r;
}

TEST_F(RankReplay, AFolderOfExecutionTracesGivesEachRankItsOwn) {
  const auto folder = *shared_data() / "traces/dlrm_8xv100";
  const JobFiles job = job_files({folder / "rank2.kineto.json.gz", folder / "rank0.kineto.json.gz"}, {folder});
  ASSERT_EQ(job.files.size(), 2u);
  EXPECT_EQ(job.files[0].execution_trace.filename(), "rank2.et.json.gz");
  EXPECT_EQ(job.files[1].execution_trace.filename(), "rank0.et.json.gz");
  const JobFiles one = job_files({folder / "rank3.kineto.json.gz"}, {folder});
  EXPECT_EQ(one.files[0].execution_trace.filename(), "rank3.et.json.gz");
  EXPECT_THROW(job_files({folder / "rank3.kineto.json.gz"}, {folder.parent_path() / "nsys"}), InputError);
}

TEST_F(RankReplay, OtherRunsAndDoubledRanksAreRefused) {
  std::vector<Captured> twice{ranks_[0], ranks_[0]};
  EXPECT_THROW(joined_steps(steps_of(twice)), UsageError);
  // The same job at another time: everything matches but the times.
  std::vector<Captured> other{ranks_[0], ranks_[1]};
  Time moved{};
  for (CapturedDeviceOp& op : other[1].file.device_ops) {
    if (!other[1].file.text(op.name).starts_with("nccl")) continue;
    moved += microseconds(211);
    op.duration += moved;
  }
  other[1].alone = import_timed_capture(other[1].file);
  EXPECT_THROW(joined_steps(steps_of(other)), InputError);
}

TEST_F(RankReplay, OneFileOfTwoRanksSaysThatTheOtherIsAbsent) {
  ImportedStep step = import_kineto(*shared_data() / "traces/kineto/toy_ddp_2xa100.json.gz", ImportSettings{});
  ASSERT_TRUE(step.rank);
  EXPECT_EQ(step.rank->rank, 0);
  EXPECT_EQ(step.rank->world_size, 2);
  ASSERT_EQ(step.rank->groups.size(), 1u);
  EXPECT_EQ(step.rank->groups[0].members, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(step.rank->collectives.size(), 21u);
  describe_rank(step);
  EXPECT_EQ(step.trace.job_ranks, 2u);
  ASSERT_EQ(step.trace.groups.size(), 1u);
  EXPECT_NE(step.trace.notes.back().find("Rank 0 of 2 is present"), std::string::npos) << step.trace.notes.back();
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
