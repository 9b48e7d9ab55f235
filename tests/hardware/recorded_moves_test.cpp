// A pager's recorded decisions as ops: the same traffic, the same contents, about the same time, and executable.
#include "validate/replay/recorded_moves.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/races.h"
#include "tests/support/scripted_backend.h"
#include "tests/support/test_machine.h"
#include "validate/replay/execution.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct PagedRun {
  Trace trace;
  Machine machine;
  SimulationResult result;
};

PagedRun paged(const Trace& trace, Machine machine, const std::string& pager_text,
               const std::string& allocator = "pytorch") {
  const PolicySpec spec = parse_policy(pager_text);
  const std::unique_ptr<Pager> pager = spec.info->make_pager(spec.arguments);
  pager->plan(machine, trace);
  SimulationOptions options;
  options.allocator = allocator;
  options.pager = pager.get();
  SimulationResult result = simulate(trace, machine, options);
  return {trace, std::move(machine), std::move(result)};
}

// Two steps of which 58 MiB are alive at once, on a device of `mebibytes`; kernels are `slowdown` times as slow as
// a hundred TFLOP/s allow. With 1 the copies decide, with 100 the kernels.
PagedRun gpt(Bytes mebibytes, double slowdown, const std::string& pager_text = "lru") {
  GptShape shape;
  shape.layers = 4;
  shape.hidden = 256;
  shape.sequence = 128;
  shape.heads = 4;
  shape.vocabulary = 512;
  shape.steps = 2;
  shape.flops_per_second = 1e14 / slowdown;
  shape.launch_cost = microseconds(5);
  Machine machine = test_machine();
  machine.tiers[0].capacity = MiB(mebibytes);
  return paged(gpt_step(shape), machine, pager_text);
}

SimulationResult without_pager(const Trace& trace, const Machine& machine) { return simulate(trace, machine, {}); }

Bytes carried(const SimulationResult& result, const Machine& machine, const char* link) {
  return result.links[static_cast<std::size_t>(machine.link(link))].bytes;
}

// How much longer the ops take than the paged run, as a share.
double longer(const Trace& ops, const PagedRun& run) {
  return to_seconds(without_pager(ops, run.machine).end) / to_seconds(run.result.end) - 1;
}

// Races on device memory. Host memory is the executor's business, which serves nobody twice out of order.
std::vector<std::string> device_races(const Trace& trace) {
  std::vector<std::string> found = races(trace, 1'000'000);
  std::erase_if(found, [](const std::string& race) {
    return race.find("'pager hbm to host' does not wait for the former users of the memory") != std::string::npos;
  });
  return found;
}

std::string refusal(const Trace& trace, const Machine& machine, const std::vector<MoveRecord>& moves) {
  try {
    with_recorded_moves(trace, machine, moves);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(RecordedMoves, AreOpsOfTheSameTraffic) {
  for (const Bytes mebibytes : {42, 48, 52, 56}) {
    const PagedRun run = gpt(mebibytes, 1);
    ASSERT_TRUE(run.result.fits);
    ASSERT_GT(run.result.moves.size(), 200u);
    const Trace ops = with_recorded_moves(run.trace, run.machine, run.result.moves);
    const SimulationResult result = without_pager(ops, run.machine);
    EXPECT_TRUE(result.fits);
    for (const char* link : {"pcie_d2h", "pcie_h2d"})
      EXPECT_EQ(carried(result, run.machine, link), carried(run.result, run.machine, link)) << mebibytes;
    EXPECT_EQ(device_races(ops), std::vector<std::string>{});
    EXPECT_LE(result.tiers[0].peak_allocated, MiB(mebibytes));
  }
}

// Where copies decide, the same order of the same copies takes the same time but for the waits described below:
// 0 to 1.0 % measured here.
TEST(RecordedMoves, TakeTheTimeOfThePagedRunWhereCopiesDecide) {
  for (const Bytes mebibytes : {42, 48, 52, 56}) {
    const PagedRun run = gpt(mebibytes, 1);
    const Trace ops = with_recorded_moves(run.trace, run.machine, run.result.moves);
    EXPECT_NEAR(longer(ops, run), 0, 0.02) << mebibytes;
  }
}

// Where kernels decide, the host runs far ahead and memory that it has freed is still in use when a storage comes back:
// on hardware the copy must wait for that, in the simulator's pager it does not.
TEST(RecordedMoves, AreSlowerWhereMemoryIsNotReallyFree) {
  for (const Bytes mebibytes : {42, 48, 52, 56}) {
    const PagedRun run = gpt(mebibytes, 100);
    const Trace ops = with_recorded_moves(run.trace, run.machine, run.result.moves);
    EXPECT_GT(longer(ops, run), 0) << mebibytes;
    EXPECT_LT(longer(ops, run), 0.5) << mebibytes;  // 15 to 37 % measured here
    Trace unprotected = ops;
    for (Op& op : unprotected.ops)
      if (op.kind == OpKind::event_wait && unprotected.streams[op.stream].name == "pager in") op.kind = OpKind::mark;
    EXPECT_FALSE(device_races(unprotected).empty());
    EXPECT_NEAR(longer(unprotected, run), 0, 0.01) << mebibytes;  // 0.04 to 0.23 % measured here
  }
}

TEST(RecordedMoves, CarryTheSameContents) {
  const PagedRun run = gpt(48, 1);
  const Trace ops = with_recorded_moves(run.trace, run.machine, run.result.moves);
  const auto computed = [](const Trace& trace) {
    const std::vector<std::uint64_t> hashes = producer_hashes(trace);
    std::vector<std::uint64_t> found;
    for (OpId id = 0; id < trace.ops.size(); ++id)
      if (trace.ops[id].kind == OpKind::kernel || trace.ops[id].kind == OpKind::memset) found.push_back(hashes[id]);
    return found;
  };
  const std::vector<std::uint64_t> before = computed(run.trace), after = computed(ops);
  ASSERT_EQ(before.size(), after.size());
  EXPECT_EQ(before, after);
}

TEST(RecordedMoves, CanBeExecuted) {
  const PagedRun run = gpt(48, 1);
  const Trace schedule = schedule_of(with_recorded_moves(run.trace, run.machine, run.result.moves));
  ScriptedSettings settings;
  settings.host_capacity = MiB(256);
  ScriptedBackend backend(settings);
  ExecutionSettings execution;
  execution.passes = 2;
  execution.capacity = MiB(64);  // placed elsewhere in a warm allocator, the same storages leave other gaps
  const Execution e = execute(schedule, backend, execution);
  EXPECT_EQ(e.integrity.mismatches, 0u);
  EXPECT_GT(e.integrity.checks, 1000u);
  EXPECT_LE(e.peaks[0].allocated, MiB(48));
  // Without the waits for what is fetched, kernels read what is not there yet.
  Trace damaged = schedule;
  for (Op& op : damaged.ops)
    if (op.kind == OpKind::event_wait && op.added && damaged.streams[op.stream].role == StreamRole::compute)
      op.kind = OpKind::mark;
  EXPECT_THROW(execute(damaged, backend, execution), std::runtime_error);
}

TEST(RecordedMoves, NoMovesChangeNothing) {
  const PagedRun run = gpt(80, 1);
  ASSERT_TRUE(run.result.moves.empty());
  const Trace ops = with_recorded_moves(run.trace, run.machine, {});
  EXPECT_EQ(ops.ops.size(), run.trace.ops.size());
  EXPECT_EQ(without_pager(ops, run.machine).end, run.result.end);
}

TEST(RecordedMoves, OtherPagersAreRefused) {
  const PagedRun faults = gpt(48, 1, "lru:clock=device");
  ASSERT_FALSE(faults.result.moves.empty());
  EXPECT_NE(refusal(faults.trace, faults.machine, faults.result.moves).find("not implemented"), std::string::npos);
  const PagedRun nvme = gpt(48, 1, "lru:to=nvme");
  EXPECT_NE(refusal(nvme.trace, nvme.machine, nvme.result.moves).find("from 'hbm' to 'nvme'"), std::string::npos);
  PagedRun run = gpt(48, 1);
  run.result.moves[3].for_op = kNoOp;
  EXPECT_NE(refusal(run.trace, run.machine, run.result.moves).find("names no op"), std::string::npos);
  run = gpt(48, 1);
  std::erase_if(run.result.moves, [](const MoveRecord& move) { return move.to == 0; });
  EXPECT_NE(refusal(run.trace, run.machine, run.result.moves).find("not implemented"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
