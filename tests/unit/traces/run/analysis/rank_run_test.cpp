// What a run of several ranks says of each: paths, classes, waits, summaries, files, policies.
#include <gtest/gtest.h>

#include "sim/error.h"
#include "sim/machine/rank_machine.h"
#include "sim/policy/registry.h"
#include "sim/trace/rendezvous.h"
#include "sim/trace/trace_check.h"
#include "tests/support/rank_program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/accounting.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/export/export_lanes.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Duration us(std::int64_t n) { return microseconds(n); }

// Rank 3 computes 100 us, rank 5 for 400; all reduce for 30; 10 us more. Rank 5 holds 2 GB that are no storages.
Trace late_rank() {
  RankAuthor a(3), b(5);
  for (auto [author, time] : {std::pair(&a, us(100)), std::pair(&b, us(400))}) {
    author->kernel(time);
    author->order(0, 1);
    author->meet(7, us(30));
    author->order(1, 0);
    author->kernel(us(10));
    author->trace().groups = {{"dp", 2, {3, 5}}};
    author->trace().samples_per_step = 8;
  }
  b.trace().untracked_bytes = 2'000'000'000;
  return joined(std::move(a), std::move(b));
}

Run run_of(const Trace& trace) { return simulate_and_record(trace, test_machine(), {}); }

TEST(RankRun, ThePathOfTheRunGoesOnWithWhoCameLast) {
  const memwall::Run run = run_of(late_rank());
  ClassTimes times;
  for (const PathSegment& segment : critical_path(run)) {
    times[segment.time_class] += segment.end - segment.begin;
    if (segment.end <= us(400)) {
      EXPECT_EQ(rank_of(run.trace, run.trace->ops[segment.op]), 1);
    }
  }
  EXPECT_EQ(times[TimeClass::compute], us(410));
  EXPECT_EQ(times[TimeClass::collective], us(30));
  EXPECT_EQ(times.total(), run.result.end);
}

TEST(RankRun, ARanksOwnPathWaitsForItsPeers) {
  const memwall::Run run = run_of(late_rank());
  Duration waited{};
  for (const PathSegment& segment : critical_path_of_rank(run, 0)) {
    EXPECT_EQ(rank_of(run.trace, run.trace->ops[segment.op]), 0);
    if (segment.part == PathPart::wait) waited += segment.end - segment.begin;
  }
  EXPECT_EQ(waited, us(300));
  for (const PathSegment& segment : critical_path_of_rank(run, 1)) EXPECT_NE(segment.part, PathPart::wait);
}

TEST(RankRun, EveryInstantOfEachRankHasOneClass) {
  const memwall::Run run = run_of(late_rank());
  const TimeAccounting accounting = account(run);
  ASSERT_EQ(accounting.steps.size(), 2u);
  for (const StepAccounting& step : accounting.steps) {
    EXPECT_EQ(step.times.total(), us(440));
    EXPECT_EQ(step.times[TimeClass::idle], us(0));
  }
  EXPECT_EQ(accounting.steps[0].window.rank, 0);
  EXPECT_EQ(accounting.steps[0].times[TimeClass::compute], us(110));
  EXPECT_EQ(accounting.steps[0].times[TimeClass::collective], us(330))
      << "waiting for peers is waiting for a collective";
  EXPECT_EQ(accounting.steps[1].times[TimeClass::compute], us(410));
  EXPECT_EQ(accounting.steps[1].times[TimeClass::collective], us(30));
  EXPECT_EQ(accounting.total.total(), us(880));
}

TEST(RankRun, TheSummarySaysWhoWaitsForWhom) {
  const RunSummary summary = summarize(run_of(late_rank()));
  ASSERT_EQ(summary.by_rank.size(), 2u);
  const RankSummary &early = summary.by_rank[0], &late = summary.by_rank[1];
  EXPECT_EQ(early.number, 3u);
  EXPECT_EQ(late.number, 5u);
  for (const RankSummary& rank : summary.by_rank) {
    EXPECT_EQ(rank.step_time, us(440));
    EXPECT_EQ(rank.gpu_span, us(440));
    EXPECT_EQ(rank.collectives, 1u);
  }
  EXPECT_EQ(early.peer_wait, us(300));
  EXPECT_EQ(early.last, 0u);
  EXPECT_EQ(late.peer_wait, us(0));
  EXPECT_EQ(late.last, 1u);
  EXPECT_EQ(late.held_up, us(300));
  EXPECT_EQ(early.waits_for, 5u);
  EXPECT_EQ(early.waits_for_time, us(300));
  EXPECT_EQ(late.waits_for, std::nullopt);
  EXPECT_EQ(late.node, 0u) << "of eight GPUs";
  const WaitTotal& peers = summary.waits.device[static_cast<std::size_t>(WaitReason::peer)];
  EXPECT_EQ(peers.time, us(300));
  EXPECT_EQ(peers.count, 1u);
  EXPECT_EQ(summary.steps[1].rank, 5u);
  EXPECT_EQ(summary.ranks, 2u);
  EXPECT_NEAR(summary.samples_per_second, 16 / 440e-6, 1) << "of both";
  EXPECT_EQ(summarize(run_of(one_rank(late_rank(), 0))).by_rank.size(), 0u);
}

RankSummary held_up(Duration time) {
  RankSummary rank;
  rank.held_up += time;
  return rank;
}

TEST(RankRun, AStragglerHoldsTheOthersUpMuchLongerThanAnyOther) {
  EXPECT_EQ(straggler(run_of(late_rank()).trace->rank_table.empty() ? std::vector<RankSummary>{}
                                                                    : rank_summaries(run_of(late_rank()))),
            1u);
  EXPECT_EQ(straggler({held_up(us(1)), held_up(us(10)), held_up(us(5))}), 1u);
  EXPECT_EQ(straggler({held_up(us(10)), held_up(us(9))}), std::nullopt) << "they wait for each other";
  EXPECT_EQ(straggler({held_up(us(0)), held_up(us(0))}), std::nullopt);
  EXPECT_EQ(straggler({}), std::nullopt);
}

TEST(RankRun, EveryLaneOfAPictureNamesItsRankByItsNumberInTheJob) {
  const memwall::Run run = run_of(late_rank());
  const ExportLanes lanes(run);
  std::size_t of_3 = 0, of_5 = 0;
  for (const ExportLane& lane : lanes.lanes()) {
    of_3 += lane.name.ends_with(", rank 3");
    of_5 += lane.name.ends_with(", rank 5");
    EXPECT_EQ(lane.name.find("GPU"), std::string::npos) << lane.name;
  }
  EXPECT_EQ(of_3 + of_5, lanes.lanes().size());
  EXPECT_EQ(of_3, of_5);
  const memwall::Run alone = run_of(one_rank(late_rank(), 0));
  EXPECT_EQ(ExportLanes(alone).lanes().front().name.find("rank"), std::string::npos);
}

TEST(RankRun, UntrackedBytesAreOnTheTierOfTheirRank) {
  const memwall::Run run = run_of(late_rank());
  const auto unknown = [&](const char* tier) {
    return memory_by_kind(run, run.machine.tier(tier)).front().by_kind[static_cast<int>(StorageKind::unknown)];
  };
  EXPECT_EQ(unknown("hbm"), 0);
  EXPECT_EQ(unknown("hbm rank 5"), 2'000'000'000);
  EXPECT_EQ(run.memory[static_cast<std::size_t>(run.machine.tier("hbm rank 5"))].front().allocated, 2'000'000'000);
}

TEST(RankRun, TheFileKeepsRanksGroupsAndPeers) {
  const memwall::Run run = run_of(late_rank());
  const ScratchFolder folder;
  write_run(run, folder.path() / "run.h5");
  const memwall::Run read = read_run(folder.path() / "run.h5");
  EXPECT_EQ(to_json(summarize(read)), to_json(summarize(run)));
  EXPECT_EQ(read.trace->job_ranks, run.trace->job_ranks);
  ASSERT_EQ(read.trace->groups.size(), 1u);
  EXPECT_EQ(read.trace->groups[0].name, "dp");
  EXPECT_EQ(read.trace->groups[0].members, (std::vector<std::uint32_t>{3, 5}));
  ASSERT_EQ(read.trace->rank_table.size(), 2u);
  EXPECT_EQ(read.trace->rank_table[1].number, 5u);
  EXPECT_EQ(read.trace->rank_table[1].untracked_bytes, 2'000'000'000);
  EXPECT_EQ(read.trace->rank_table[1].constants.event_latency, Duration{});
  EXPECT_EQ(read.trace->threads[1].rank, 1);
  EXPECT_EQ(read.trace->streams[3].rank, 1);
  for (OpId id = 0; id < run.result.records.size(); ++id)
    EXPECT_EQ(read.result.records[id].peer, run.result.records[id].peer);
}

TEST(RankRun, AFileWhoseRanksDoNotAgreeIsRefused) {
  const ScratchFolder folder;
  const auto refused = [&](auto change) {
    memwall::Run run = run_of(late_rank());
    change(run);
    write_run(run, folder.path() / "run.h5");
    try {
      read_run(folder.path() / "run.h5");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused([](memwall::Run&) {}), "");
  EXPECT_NE(refused([](memwall::Run& r) { r.trace.edit().threads[1].rank = 9; }), "");
  EXPECT_NE(refused([](memwall::Run& r) { r.trace.edit().streams[1].rank = 2; }), "");
  EXPECT_NE(refused([](memwall::Run& r) { r.trace.edit().rank_table[1].number = 3; }), "");
  EXPECT_NE(refused([](memwall::Run& r) { r.machine.tiers.back().name = "hbm rank 4"; }), "");
  EXPECT_NE(refused([](memwall::Run& r) { r.result.records[1].peer = 0; }), "") << "a kernel waited for a mark";
}

// --- policies ---

class TestRewriter : public Rewriter {
 public:
  explicit TestRewriter(std::function<void(Trace&)> change) : change_(std::move(change)) {}
  Trace rewrite(const Trace& trace, const Machine&, const Pricer&) const override {
    EXPECT_EQ(rank_count(trace), 1u) << "a rewriter sees one rank";
    Trace out = trace;
    change_(out);
    return out;
  }

 private:
  std::function<void(Trace&)> change_;
};

void halve(Trace& trace) {
  for (Op& op : trace.ops)
    if (op.kind == OpKind::kernel) op.duration /= 2;
  trace.notes.emplace_back("Kernels are halved.");
}

void repeat_collectives(Trace& trace) {
  std::vector<Op> ops;
  for (const Op& op : trace.ops) {
    ops.push_back(op);
    if (op.kind == OpKind::collective) ops.push_back(op);
  }
  trace.ops = std::move(ops);
  trace.steps[0].last = static_cast<OpId>(trace.ops.size());
}

PolicyInfo policy(const char* name, PolicyKind kind, RankRule ranks, std::function<void(Trace&)> change) {
  return {
      .name = name, .sentence = "a test's", .kind = kind, .ranks = ranks, .make_rewriter = [=](const PolicyArguments&) {
        return std::make_unique<TestRewriter>(change);
      }};
}

const RegisterPolicy halving{policy("test_halve", PolicyKind::precision, RankRule::each_alone, halve)};
const RegisterPolicy repeating{
    policy("test_repeat", PolicyKind::memory_plan, RankRule::each_alone, repeat_collectives)};
const RegisterPolicy sharding{policy("test_shard", PolicyKind::sharding, RankRule::one_program, halve)};

Trace with_policy(const char* name) {
  const Machine machine = test_machine();
  return apply_rewriters(late_rank(), {parse_policy(name)}, machine, *test_pricer(machine));
}

TEST(RankRun, PoliciesRewriteEachRankAndTheyStillMeet) {
  const Trace halved = with_policy("test_halve");
  EXPECT_EQ(check(halved), std::vector<std::string>{});
  EXPECT_EQ(run_of(halved).result.end, us(200 + 30 + 5));
  EXPECT_EQ(halved.notes, (std::vector<std::string>{"Kernels are halved."}));
  const Trace twice = with_policy("test_repeat");
  EXPECT_EQ(check(twice), std::vector<std::string>{});
  EXPECT_EQ(RendezvousTable(twice).size(), 2u) << "what both repeat they meet for again";
  EXPECT_EQ(run_of(twice).result.end, us(400 + 2 * 30 + 10));
  EXPECT_THROW(with_policy("test_shard"), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
