// Ranks of two programs share a host's memory in any numbers: do folded ranks fill it as those written out?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "sim/engine/simulation.h"
#include "sim/machine/tier_copies.h"
#include "sim/trace/ranks.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Allocates and frees in host memory, one call every 2 us from `first` on: programs of different starts never act at
// one instant.
struct HostProgram {
  Duration first{};
  struct Call {
    bool frees = false;   // what was allocated longest ago, if anything
    bool pinned = false;  // of what is allocated
    Bytes bytes = 0;
  };
  std::vector<Call> calls;

  Trace written() const {
    TraceBuilder builder;
    Trace& t = builder.trace();
    t.name = "job";
    t.knowledge.timing = t.knowledge.allocations = true;
    t.place("hbm");
    builder.add_thread("main");
    builder.add_stream("compute", StreamRole::compute);
    t.steps.push_back({"step", 0, 0});
    Op begin;
    begin.host_cost = first;
    builder.append(begin);
    std::vector<StorageId> live;
    for (const Call& call : calls) {
      Op op;
      op.host_cost = microseconds(2);
      if (call.frees && !live.empty()) {
        op.kind = OpKind::free;
        op.target = live.front();
        live.erase(live.begin());
      } else if (!call.frees) {
        op.kind = OpKind::alloc;
        op.target = builder.add_storage(call.bytes, StorageKind::activation, "host", "");
        t.storages.back().pinned = call.pinned;
        live.push_back(op.target);
      }
      builder.append(op);
    }
    Trace trace = std::move(builder).finish();
    trace.steps.back().last = static_cast<OpId>(trace.ops.size());
    return trace;
  }
};

HostProgram random_program(Duration first) {
  HostProgram program{first, {}};
  for (int i = *rc::gen::inRange(1, 12); i > 0; --i)
    program.calls.push_back(
        {*rc::gen::inRange(0, 3) == 0, *rc::gen::inRange(0, 2) == 0, *rc::gen::inRange<Bytes>(1, 2'000'000'000)});
  return program;
}

RC_GTEST_PROP(SharedTier, FoldedRanksFillItAsWrittenOut, ()) {
  const auto of_first = static_cast<std::uint32_t>(*rc::gen::inRange(1, 5));
  const auto of_second = static_cast<std::uint32_t>(*rc::gen::inRange(1, 5));
  const Trace first = random_program({}).written(), second = random_program(microseconds(1)).written();
  Machine machine = test_machine();
  const auto host = static_cast<std::size_t>(machine.tier("host"));
  machine.tiers[host].sharers = of_first + of_second;
  // Of two ranks of one program one is told with each: their numbers alternate as far as they go.
  std::vector<RankProgram> all;
  RankProgram folded[2] = {{0, first, {}}, {1, second, {}}};
  std::uint32_t left[2] = {of_first, of_second};
  for (std::uint32_t number = 0; number < of_first + of_second; ++number) {
    const std::size_t program = left[number % 2] > 0 ? number % 2 : 1 - number % 2;
    --left[program];
    all.push_back({number, program == 0 ? first : second, {}});
    if (number != folded[program].number) folded[program].stands_for.push_back(number);
  }
  const Trace written_out = joined_ranks(all), few = joined_ranks({folded[0], folded[1]});
  RC_ASSERT(check(few).empty());
  machine.tiers[host].capacity = *rc::gen::inRange<Bytes>(1, 10) * 1'000'000'000 * (of_first + of_second);
  const SimulationResult a = simulate(written_out, machine, {}), b = simulate(few, machine, {});
  const Bytes parts = std::gcd(of_first, of_second);
  RC_CLASSIFY(of_first != of_second);
  RC_CLASSIFY(!a.fits);
  RC_ASSERT(a.fits == b.fits);
  const auto tier = machine_of_ranks(machine, few).views[0].tier[host];
  RC_ASSERT(a.tiers[host].peak_allocated == b.tiers[tier].peak_allocated * parts);
  if (a.fits) RC_ASSERT(a.tiers[host].peak_reserved == b.tiers[tier].peak_reserved * parts);
  for (int kind = 0; kind < kStorageKinds; ++kind)
    RC_ASSERT(a.tiers[host].peak_by_kind[kind] == b.tiers[tier].peak_by_kind[kind] * parts);
}

// One rank holds 1 GB of the host, each of three others 2: 7 GB.
TEST(SharedTierMemory, CountsEachProgramByItsRanks) {
  const auto holding = [](Bytes bytes) { return HostProgram{{}, {{false, false, bytes}}}.written(); };
  const Trace trace = joined_ranks({{0, holding(1'000'000'000), {}}, {1, holding(2'000'000'000), {2, 3}}});
  Machine machine = test_machine();
  const auto host = static_cast<std::size_t>(machine.tier("host"));
  machine.tiers[host].sharers = 4;
  machine.tiers[host].capacity = 7'000'000'000;
  const memwall::Run fits = simulate_and_record(trace, machine, {});
  EXPECT_TRUE(fits.result.fits);
  EXPECT_EQ(fits.result.tiers[host].peak_allocated, 7'000'000'000);
  EXPECT_EQ(memory_by_kind(fits, static_cast<int>(host)).back().by_kind[static_cast<int>(StorageKind::activation)],
            7'000'000'000);
  machine.tiers[host].capacity = 6'500'000'000;
  const SimulationResult lacks = simulate(trace, machine, {});
  EXPECT_FALSE(lacks.fits);
  EXPECT_EQ(lacks.tiers[host].missing, 500'000'000);
  const TierCopies copies(machine_of_ranks(machine, trace), trace);
  EXPECT_EQ(copies.of(0, host), 1u);
  EXPECT_EQ(copies.of(1, host), 3u);
  EXPECT_EQ(copies.of(1, 0), 1u) << "the GPU's memory is its own";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
