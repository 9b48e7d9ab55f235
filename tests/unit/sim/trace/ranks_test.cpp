// Do the ranks of a trace wait for each other as they should, and share nothing that is each one's own?
#include "sim/trace/ranks.h"

#include <gtest/gtest.h>

#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/repeat.h"
#include "sim/trace/scale.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Duration us(std::int64_t n) { return microseconds(n); }

// The ops of a rank on a stream, by what ran there.
std::vector<OpRecord> records_on(const Trace& trace, const SimulationResult& result, std::size_t stream) {
  std::vector<OpRecord> records;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (runs_on_device(trace.ops[id].kind) && trace.ops[id].stream == stream) records.push_back(result.records[id]);
  return records;
}

std::string sentences(const Trace& trace) {
  std::string all;
  for (const std::string& sentence : check(trace)) all += sentence + "\n";
  return all;
}

// Rank r computes for its time, then all reduce for theirs, then compute 10 us more.
Trace two_ranks(Duration first, Duration second) {
  RankAuthor a(0), b(1);
  for (auto [author, time, wire] : {std::tuple(&a, first, us(30)), std::tuple(&b, second, us(20))}) {
    author->kernel(time);
    author->order(0, 1);
    author->meet(7, wire);
    author->order(1, 0);
    author->kernel(us(10));
  }
  return joined(std::move(a), std::move(b));
}

TEST(Ranks, ACollectiveEndsForAllWhenTheLastHasComeAndItsLongestIsOver) {
  const Trace trace = two_ranks(us(100), us(400));
  ASSERT_EQ(sentences(trace), "");
  const SimulationResult result = simulate(trace, test_machine(), {});
  const OpRecord early = records_on(trace, result, 1)[0], late = records_on(trace, result, 3)[0];
  EXPECT_EQ(early.start, us(100)) << "it begins, and occupies its stream, before the other comes";
  EXPECT_EQ(late.start, us(400));
  EXPECT_EQ(early.end, us(430)) << "the longest duration of its members, after the last has begun";
  EXPECT_EQ(late.end, us(430));
  EXPECT_EQ(result.end, us(440));
  ASSERT_LT(early.peer, trace.ops.size());
  EXPECT_EQ(result.records[early.peer].start, us(400));
  EXPECT_EQ(late.peer, kNoOp) << "the last waited for nobody";
  for (const StepResult& step : result.steps) EXPECT_EQ(step.step_time, us(440));
}

TEST(Ranks, WithoutThePeersACollectiveTakesItsOwnTime) {
  const Trace alone = one_rank(two_ranks(us(100), us(400)), 0);
  const SimulationResult result = simulate(alone, test_machine(), {});
  EXPECT_EQ(records_on(alone, result, 1)[0].end, us(130));
  EXPECT_EQ(records_on(alone, result, 1)[0].peer, kNoOp);
}

TEST(Ranks, GroupsMeetApart) {
  // Ranks 0 and 1 in one group, 1 and 2 in another; rank 2 is the late one, and rank 0 never hears of it.
  RankAuthor a(0), b(1), c(2);
  a.kernel(us(10), 1);
  a.meet(1, us(5), 1, 0);
  b.kernel(us(50), 1);
  b.meet(1, us(5), 1, 0);
  b.meet(2, us(7), 1, 1);
  c.kernel(us(500), 1);
  c.meet(2, us(7), 1, 1);
  const Trace trace = joined(std::move(a), std::move(b), std::move(c));
  ASSERT_EQ(sentences(trace), "");
  const SimulationResult result = simulate(trace, test_machine(), {});
  EXPECT_EQ(records_on(trace, result, 1)[1].end, us(55));
  EXPECT_EQ(records_on(trace, result, 3)[1].end, us(55));
  EXPECT_EQ(records_on(trace, result, 3)[2].start, us(55));
  EXPECT_EQ(records_on(trace, result, 3)[2].end, us(507));
  EXPECT_EQ(result.steps[0].step_time, us(55)) << "a rank's last step ends with its own work";
  EXPECT_EQ(result.end, us(507));
}

TEST(Ranks, InAChainOfMeetingsEachDelayIsPassedOn) {
  // In round i rank i % 3 is late by 100 us: every round costs 100 us for everybody, and 10 us of wire.
  constexpr std::uint32_t kRounds = 9;
  std::vector<RankProgram> ranks;
  for (std::uint32_t number = 0; number < 3; ++number) {
    RankAuthor author(number);
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      author.kernel(round % 3 == number ? us(100) : us(1), 1);
      author.meet(round, us(10));
    }
    ranks.push_back(std::move(author).finish());
  }
  const Trace trace = joined_ranks(std::move(ranks));
  const SimulationResult result = simulate(trace, test_machine(), {});
  EXPECT_EQ(result.end, kRounds * us(110));
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].kind == OpKind::collective) {
      const bool last = trace.ops[id].target % 3 == rank_of(trace, trace.ops[id]);
      EXPECT_EQ(result.records[id].peer == kNoOp, last);
    }
}

TEST(Ranks, PartnersThatNeverComeAreNamed) {
  RankAuthor a(4), b(6);
  a.meet(1, us(5));
  a.meet(2, us(5));
  b.meet(2, us(5));  // the other way round on one stream: nobody can go on
  b.meet(1, us(5));
  const Trace trace = joined(std::move(a), std::move(b));
  ASSERT_EQ(sentences(trace), "");
  try {
    simulate(trace, test_machine(), {});
    FAIL() << "it ended";
  } catch (const InputError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("waits forever for op"), std::string::npos) << what;
    EXPECT_NE(what.find("rank 4"), std::string::npos) << what;
    EXPECT_NE(what.find("rank 6"), std::string::npos) << what;
    EXPECT_NE(what.find("form a circle"), std::string::npos) << what;
  }
}

TEST(Ranks, EachHasItsOwnLaunchLatencyGapAndQueue) {
  RankAuthor a(0), b(1);
  for (RankAuthor* author : {&a, &b}) {
    author->kernel(us(10));
    author->kernel(us(10));
  }
  a.trace().constants.launch_latency[0] = us(3);
  b.trace().constants.launch_latency[0] = us(5);
  b.trace().constants.stream_gap[0][0] = us(2);
  b.trace().constants.launch_queue_depth = 1;
  b.mark();
  const Trace trace = joined(std::move(a), std::move(b));
  const SimulationResult result = simulate(trace, test_machine(), {});
  EXPECT_EQ(records_on(trace, result, 0)[0].start, us(3));
  EXPECT_EQ(records_on(trace, result, 0)[1].start, us(13));
  EXPECT_EQ(records_on(trace, result, 2)[0].start, us(5));
  EXPECT_EQ(records_on(trace, result, 2)[1].start, us(17));
  EXPECT_EQ(result.records.back().host_start, us(5)) << "one call in the queue, until the first kernel starts";
}

TEST(Ranks, EachWaitsForItsOwnDeviceOnly) {
  RankAuthor a(0), b(1);
  a.kernel(us(10));
  a.synchronize();
  b.kernel(us(1000));
  const Trace trace = joined(std::move(a), std::move(b));
  const SimulationResult result = simulate(trace, test_machine(), {});
  EXPECT_EQ(result.steps[0].step_time, us(10)) << "its last work, not the other's";
  EXPECT_EQ(result.steps[1].step_time, us(1000));
}

// --- memory, links, engines ---

RankProgram copier(std::uint32_t number, Bytes bytes, bool added) {
  RankAuthor author(number);
  TraceBuilder& builder = author.builder();
  builder.add_storage(70'000'000'000, StorageKind::parameter, "hbm", "weights", true);
  Op op;
  op.kind = OpKind::copy;
  op.from = builder.trace().place("host");
  op.to = builder.trace().place("hbm");
  op.bytes = bytes;
  op.duration = from_seconds(static_cast<double>(bytes) / 10e9);
  op.added = added;
  builder.append(op);
  author.trace().untracked_bytes = 1'000'000'000 * (number + 1);
  return std::move(author).finish();
}

TEST(Ranks, EachHasAGpuOfItsOwnAndOneHost) {
  const Trace trace = joined_ranks({copier(0, 1000, false), copier(1, 1000, false), copier(2, 1000, false)});
  const Machine machine = test_machine();
  const SimulationResult result = simulate(trace, machine, {.allocator = "ideal"});
  const RankMachine ranks = machine_of_ranks(machine, trace);
  EXPECT_TRUE(result.fits) << "70 GB on each of three GPUs of 80 GB";
  for (const auto& [tier, number] : {std::pair("hbm", 1), std::pair("hbm rank 1", 2), std::pair("hbm rank 2", 3)}) {
    ASSERT_GE(ranks.tier(tier), 0) << tier;
    EXPECT_EQ(result.tiers[static_cast<std::size_t>(ranks.tier(tier))].peak_allocated,
              70'000'000'000 + number * Bytes{1'000'000'000})
        << tier;
  }
  EXPECT_EQ(ranks.tiers.size(), machine.tiers.size() + 2 * 2) << "hbm and peer_hbm; host and nvme once";
  EXPECT_EQ(ranks.one.tiers.size(), machine.tiers.size()) << "what one GPU has stays to be seen";
}

TEST(Ranks, WorkNearTheMemoryStaysInItsMemory) {
  // Places are numbered anew where ranks are joined, and the second's "nvme" is not where it was.
  RankAuthor first(0), second(1);
  for (const char* place : {"hbm", "host"}) first.builder().trace().place(place);
  for (const char* place : {"hbm", "nvme"}) second.builder().trace().place(place);
  first.kernel(us(1));
  Op op;
  op.kind = OpKind::host_work;
  op.duration = us(5);
  op.bytes = 1000;
  op.from = second.builder().trace().place("nvme");
  const OpId id = second.builder().append(op);
  const Trace both = joined(std::move(first), std::move(second));
  ASSERT_EQ(both.places, (std::vector<std::string>{"hbm", "host", "nvme"}));
  const auto memory_of_work = [](const Trace& trace) -> std::string {
    for (const Op& o : trace.ops)
      if (o.kind == OpKind::host_work) return trace.places[o.from];
    return "no host work";
  };
  EXPECT_EQ(memory_of_work(both), "nvme");
  EXPECT_EQ(memory_of_work(one_rank(both, 1)), "nvme");
  EXPECT_EQ(one_rank(both, 1).ops[id].duration, us(5));
}

TEST(Ranks, LinksAreSharedByAsManyAsTheirSharers) {
  // Four ranks copy 1 GB at once over a link of 10 GB/s each, or one for each two.
  const auto time_of = [](std::uint32_t sharers, std::vector<std::uint32_t> numbers) {
    Machine machine = test_machine();
    machine.links[static_cast<std::size_t>(machine.link("pcie_h2d"))].sharers = sharers;
    std::vector<RankProgram> programs;
    for (const std::uint32_t number : numbers) programs.push_back(copier(number, 1'000'000'000, true));
    return simulate(joined_ranks(std::move(programs)), machine, {.allocator = "ideal"}).end;
  };
  EXPECT_EQ(time_of(1, {0, 1, 2, 3}), us(100'000));
  EXPECT_NEAR(to_seconds(time_of(2, {0, 1, 2, 3})), 0.2, 1e-9);
  EXPECT_NEAR(to_seconds(time_of(2, {1, 2})), 0.1, 1e-9) << "1 shares with 0, 2 with 3";
  EXPECT_NEAR(to_seconds(time_of(4, {0, 1, 2, 3})), 0.4, 1e-9);
}

TEST(Ranks, AMeetingThatAPolicyAddedCrossesTheLinksOfAllOnce) {
  // 10 GB that the wire alone needs 50 ms for, over a fabric of 100 GB/s: 100 ms, whoever comes last.
  const auto time_of = [](Bytes first, Bytes second) {
    RankAuthor a(0), b(1);
    for (auto [author, bytes] : {std::pair(&a, first), std::pair(&b, second)}) {
      Op& op = author->trace().ops[author->meet(7, us(50'000))];
      op.bytes = bytes;
      op.added = true;
    }
    return simulate(joined(std::move(a), std::move(b)), test_machine(), {}).end;
  };
  const Duration whole = time_of(10'000'000'000, 10'000'000'000);
  EXPECT_NEAR(to_seconds(whole), 0.1, 1e-6);
  for (const Bytes less : {0, 1000}) {
    EXPECT_EQ(time_of(10'000'000'000, less), whole) << "the most that a member moves, whoever comes last";
    EXPECT_EQ(time_of(less, 10'000'000'000), whole);
  }
  EXPECT_EQ(time_of(1000, 1000), us(50'000));
}

TEST(Ranks, AMeetingOfSeveralWavesHoldsKernelsOfEachRank) {
  RankAuthor a(0), b(1);
  for (RankAuthor* author : {&a, &b}) {
    author->trace().ops[author->meet(7, us(100))].waves = 4;
  }
  a.kernel(us(10));
  b.kernel(us(10));
  // Issued behind the collective, ready while it runs.
  for (RankAuthor* author : {&a, &b}) author->trace().ops.back().host_gap = us(20);
  const Trace trace = joined(std::move(a), std::move(b));
  const SimulationResult result = simulate(trace, test_machine(), {});
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].kind == OpKind::kernel) {
      EXPECT_EQ(result.records[id].start, us(75)) << "in the last wave";
    }
}

// Of budgets and of completeness the worst stands for all; a copy that one rank holds is that rank's.
TEST(Ranks, WhatPoliciesLeaveStaysWithItsRank) {
  Trace first = gpt_step({.layers = 1}), second = gpt_step({.layers = 1});
  first.budgets = {{"plan", 1000, 20}, {"chen", 500, 0}};
  second.budgets = {{"plan", 900, 70}};
  second.held_copies = {{1, 0}};
  second.completeness = Completeness::gaps;
  second.completeness_reason = "Launches are missing.";
  const auto storages = static_cast<StorageId>(first.storages.size());
  const Trace both = joined_ranks({{.number = 0, .trace = first}, {.number = 1, .trace = second}});
  EXPECT_EQ(both.budgets, (std::vector<MemoryBudget>{{"plan", 900, 70}, {"chen", 500, 0}}));
  EXPECT_FALSE(both.keeps_to_budgets());
  EXPECT_EQ(both.completeness, Completeness::gaps);
  EXPECT_EQ(both.completeness_reason, "Launches are missing.");
  EXPECT_EQ(both.held_copies, (std::vector<HeldCopy>{{storages + 1, storages}}));
  EXPECT_EQ(one_rank(both, 0).held_copies, std::vector<HeldCopy>{});
  EXPECT_EQ(one_rank(both, 1).held_copies, second.held_copies);
  EXPECT_EQ(one_rank(both, 1).completeness, Completeness::gaps);
}

TEST(Ranks, TooManyForOneTraceAreRefused) {
  std::vector<RankProgram> programs;
  for (std::uint32_t number = 0; number < 200; ++number) programs.push_back(copier(number, 1000, false));
  const Trace trace = joined_ranks(std::move(programs));
  EXPECT_TRUE(simulate(trace, test_machine(), {}).fits) << "200 times hbm and peer_hbm";
  Trace many;
  for (std::uint32_t number = 0; number < 16'400; ++number) many.rank_table.emplace_back().number = number;
  EXPECT_THROW(machine_of_ranks(test_machine(), many), UsageError) << "16,400 times hbm and peer_hbm";
  many.rank_table.resize(100);
  EXPECT_EQ(machine_of_ranks(test_machine(), many).views.size(), 100u);
  const std::size_t links = test_machine().links.size();
  many.rank_table.resize(65'535 / links + 1);
  for (std::uint32_t number = 0; number < many.rank_table.size(); ++number) many.rank_table[number].number = number;
  EXPECT_THROW(machine_of_ranks(test_machine(), many), UsageError) << "more links than 16 bits number";
}

// --- rounds and scales ---

TEST(Ranks, RoundsMeetAnewAndTakeAsLong) {
  const Trace once = two_ranks(us(100), us(400));
  const Trace thrice = repeated(once, 3);
  ASSERT_EQ(sentences(thrice), "");
  const SimulationResult result = simulate(thrice, test_machine(), {});
  EXPECT_EQ(result.end, us(440 + 2 * 440)) << "the late rank's 400 + 30 + 10 us each time";
  EXPECT_EQ(result.steps.size(), 6u);
}

TEST(Ranks, ASlowRankSlowsAll) {
  const Trace trace = two_ranks(us(100), us(400));
  const auto end_of = [](const Trace& t, std::size_t rank) {
    return simulate(t, test_machine(), {}).steps[rank].step_time;
  };
  const Trace late = scaled(trace, {.kernels = 1.1, .rank = 1});
  EXPECT_EQ(end_of(late, 0), us(440 + 40)) << "by what the late one needs more before they meet";
  EXPECT_EQ(end_of(late, 1), us(440 + 40 + 1));
  const Trace early = scaled(trace, {.kernels = 1.1, .rank = 0});
  EXPECT_EQ(end_of(early, 1), us(440)) << "who waits anyway delays nobody";
  EXPECT_EQ(end_of(early, 0), us(441));
  EXPECT_EQ(end_of(scaled(trace, {.kernels = 2}), 1), us(800 + 30 + 20)) << "what they do together keeps its time";
  EXPECT_EQ(end_of(scaled(trace, {.collectives = 2.0}), 1), us(400 + 60 + 10));
  EXPECT_EQ(end_of(scaled(one_rank(trace, 1), {.kernels = 2}), 0), us(800 + 40 + 20)) << "alone it is a kernel";
  EXPECT_THROW(scaled(trace, {.rank = 5}), UsageError);
  EXPECT_THROW(scaled(one_rank(trace, 0), {.rank = 0}), UsageError);
}

// --- what is refused ---

TEST(Ranks, WhatRanksMayNotShareIsFound) {
  const Trace sound = two_ranks(us(1), us(2));
  ASSERT_EQ(sentences(sound), "");
  const auto broken = [&](auto change) {
    Trace trace = sound;
    change(trace);
    return sentences(trace);
  };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const OpId second_meeting = [&] {
    OpId id = static_cast<OpId>(sound.ops.size());
    while (sound.ops[--id].kind != OpKind::collective) {
    }
    return id;
  }();
  EXPECT_TRUE(has(broken([](Trace& t) { t.threads[1].rank = 2; }), "rank number 2"));
  EXPECT_TRUE(has(broken([](Trace& t) { t.streams[0].rank = 9; }), "rank number 9"));
  EXPECT_TRUE(has(broken([](Trace& t) { t.rank_table.clear(); }), "rank number 1"));
  EXPECT_TRUE(has(broken([](Trace& t) { t.rank_table[1].number = 0; }), "ascending"));
  EXPECT_TRUE(has(broken([](Trace& t) { t.rank_table[1].ranks = 0; }), "0 ranks"));
  EXPECT_TRUE(has(broken([](Trace& t) { t.rank_table[0].untracked_bytes = -1; }), "beyond measure"));
  EXPECT_TRUE(has(broken([](Trace& t) { t.rank_table[0].stands_for = {t.rank_table[1].number}; }),
                  "Rank 0 stands for rank 1, which has a program of its own"));
  EXPECT_TRUE(has(broken([](Trace& t) { t.rank_table[1].stands_for = {t.rank_table[0].number}; }),
                  "Rank 1 stands for rank 0, which has a program of its own"));
  EXPECT_TRUE(has(broken([](Trace& t) { t.rank_table[0].stands_for = t.rank_table[1].stands_for = {7}; }),
                  "Ranks 0 and 1 both stand for rank 7"));
  EXPECT_TRUE(has(broken([](Trace& t) { t.streams[2].device = 0; }), "devices of its own"));
  EXPECT_TRUE(has(broken([](Trace& t) { t.ops[1].stream = 2; }), "on a stream of rank 1"));
  EXPECT_TRUE(has(broken([&](Trace& t) { t.ops[second_meeting].collective = CollectiveKind::broadcast; }),
                  "expected one kind"));
  EXPECT_TRUE(has(broken([&](Trace& t) { t.ops.push_back(t.ops[second_meeting]); }), "has come before"));
  EXPECT_TRUE(has(broken([](Trace& t) {
                    for (Op& op : t.ops)
                      if (op.kind == OpKind::event_record || op.kind == OpKind::event_wait) op.target = 0;
                  }),
                  "names event 0, which is of rank 0"));
  EXPECT_TRUE(has(broken([](Trace& t) {
                    t.storages.push_back({.bytes = 1, .place = t.place("hbm"), .preexisting = true});
                    t.uses = {{0, 0, Access::read}};
                    t.ops[1].use_count = 1;
                    t.ops.back().use_count = 1;
                    t.ops.back().first_use = t.ops[1].first_use = 0;
                  }),
                  "uses storage 0, which is of rank 0"));
}

TEST(Ranks, ReferencesEndAtOpsOfTheirOwnRank) {
  Trace step = gpt_step({});
  step.storages[3].last_referenced = 5;
  const Trace joined = joined_ranks({{0, step}, {1, step}});
  EXPECT_EQ(joined.storages[step.storages.size() + 3].last_referenced, step.ops.size() + 5);
  EXPECT_EQ(one_rank(joined, 1).storages[3].last_referenced, 5u);
  EXPECT_EQ(one_rank(joined, 1).storages[4].last_referenced, kNoOp);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
