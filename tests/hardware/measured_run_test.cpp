// Is an execution, seen as a run, a sound one, and does it say what happened?
#include "validate/report/measured_run.h"

#include <gtest/gtest.h>

#include <numeric>

#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/offload_chain.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/synthetic_execution.h"
#include "traces/run/analysis/compare.h"
#include "traces/run/file/run_file.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Latencies everywhere, so that no two bounds are met at once by accident.
Machine machine_with_latencies() {
  Machine machine = test_machine();
  machine.host.launch = microseconds(5);
  machine.host.launch_latency = microseconds(7);
  machine.host.stream_gap = microseconds(2);
  machine.host.copy_call = microseconds(6);
  machine.host.event_call = microseconds(1);
  machine.host.allocator_call = microseconds(3);
  machine.host.synchronize_return = microseconds(11);
  for (Route& route : machine.routes) route.latency = microseconds(20);
  return machine;
}

Trace offload_step(const std::string& policy = "offload:what=optimizer,to=host,cpu_adam=0") {
  return offloaded(training_step(4, kGB, false), policy);
}

TEST(Repriced, TakesStandAloneTimesForKernelsAndTheMachineForTheRest) {
  const Machine machine = machine_with_latencies();
  const Trace step = offload_step();
  const Execution execution = synthetic_execution(step, machine);
  const Trace priced = repriced(without_times(step), execution, machine);
  EXPECT_EQ(check(priced), std::vector<std::string>{});
  int copies = 0;
  for (OpId id = 0; id < priced.ops.size(); ++id) {
    const Op& op = priced.ops[id];
    EXPECT_TRUE(op.added);
    if (op.kind == OpKind::kernel) {
      EXPECT_EQ(op.duration, execution.alone[id]);
      EXPECT_EQ(op.origin, Origin::measured);
      EXPECT_EQ(op.host_cost, microseconds(5));
    }
    if (op.kind == OpKind::copy) {
      ++copies;
      EXPECT_EQ(op.duration, microseconds(20) + milliseconds(op.bytes / 10'000'000));  // at 10 GB/s
      EXPECT_EQ(op.host_cost, microseconds(6));
    }
    if (op.kind == OpKind::alloc) {
      EXPECT_EQ(op.host_cost, microseconds(3));
    }
  }
  EXPECT_GT(copies, 4);
  EXPECT_EQ(priced.constants.launch_latency[0], microseconds(7));
  EXPECT_EQ(priced.constants.event_latency, microseconds(7)) << "the host back end's streams are threads";
}

TEST(Repriced, APageableCopyTakesThePageableRoute) {
  const Machine machine = machine_with_latencies();
  Trace step = offload_step();
  for (Op& op : step.ops) op.pageable = op.kind == OpKind::copy;
  const Trace priced = repriced(without_times(step), synthetic_execution(step, machine), machine);
  for (const Op& op : priced.ops)
    if (op.kind == OpKind::copy) {
      EXPECT_EQ(op.duration, microseconds(20) + milliseconds(op.bytes / 5'000'000));
    }
}

// 1 TB/s for 100 ms are 100 GB: a kernel that states more had them from its caches.
TEST(Repriced, AKernelIsNotSlowedByItself) {
  const Machine machine = machine_with_latencies();
  Trace step = activation_chain(2);
  for (Op& op : step.ops)
    if (op.kind == OpKind::kernel) op.bytes = 300 * kGB;
  const Execution execution = synthetic_execution(step, machine);
  const auto run = simulated_run(without_times(step), execution, machine);
  for (OpId id = 0; id < step.ops.size(); ++id)
    if (step.ops[id].kind == OpKind::kernel) {
      EXPECT_EQ(run.result.records[id].end - run.result.records[id].start, milliseconds(100));
      EXPECT_NEAR(static_cast<double>(run.trace->ops[id].bytes), 100e9, 1);
    }
}

void expect_equal(const Run& measured, const Run& simulated) {
  const Machine& machine = simulated.machine;
  EXPECT_EQ(whole_nanoseconds(measured.result.end), whole_nanoseconds(simulated.result.end));
  ASSERT_EQ(measured.result.tiers.size(), simulated.result.tiers.size());
  for (std::size_t t = 0; t < measured.result.tiers.size(); ++t) {
    const TierResult &m = measured.result.tiers[t], &s = simulated.result.tiers[t];
    EXPECT_EQ(m.peak_allocated, s.peak_allocated);
    EXPECT_EQ(m.peak_usage.allocated, s.peak_usage.allocated);
    EXPECT_EQ(whole_nanoseconds(m.peak_time), whole_nanoseconds(s.peak_time));
  }
  for (std::size_t l = 0; l < measured.result.links.size(); ++l) {
    const LinkResult &m = measured.result.links[l], &s = simulated.result.links[l];
    EXPECT_EQ(m.bytes, s.bytes) << machine.links[l].name;
    EXPECT_NEAR(to_seconds(m.busy), to_seconds(s.busy), 1e-6) << machine.links[l].name;
  }
  for (OpId id = 0; id < simulated.trace->ops.size(); ++id) {
    const OpRecord &m = measured.result.records[id], &s = simulated.result.records[id];
    EXPECT_EQ(m.device_reason, s.device_reason) << id;
    EXPECT_EQ(m.device_cause, s.device_cause) << id;
    EXPECT_EQ(m.host_cause, s.host_cause) << id;
    EXPECT_EQ(m.host_end_cause, s.host_end_cause) << id;
  }
}

TEST(Repriced, OnAGpuEventsNeedNoHostAndQueuesHaveAnEnd) {
  const Machine machine = machine_with_latencies();
  Trace step = offload_step();
  for (Op& op : step.ops) op.waves = 2;
  Execution execution = synthetic_execution(step, machine);
  EXPECT_EQ(repriced(without_times(step), execution, machine).ops[3].waves, 0);
  execution.environment = {{"backend", "cuda"}};
  const Trace priced = repriced(without_times(step), execution, machine);
  EXPECT_EQ(priced.ops[3].waves, 2);
  EXPECT_EQ(priced.constants.event_latency, nanoseconds(1500));
  EXPECT_EQ(priced.constants.launch_queue_depth, 1020u);
}

// 5 MiB out of a new segment of 20 MiB leave room for 14; 12 MiB get a segment of their own. In the next pass the
// 5 MiB are best fitted into that one, and the 12 MiB need another.
TEST(SimulatedRun, ReservesWhatAWarmCacheDoes) {
  Chain chain;
  for (const Bytes size : {MiB(5), MiB(14), MiB(12)}) chain.make(size, StorageKind::activation, Phase::forward, "s");
  chain.kernel(Phase::forward, {}, {0, 1, 2});
  for (StorageId s = 0; s < 3; ++s) chain.drop(s, Phase::backward);
  const Trace step = chain.finish();
  const Machine machine = test_machine();
  EXPECT_EQ(simulate(step, machine, {}).tiers[0].peak_reserved, MiB(32));
  const Execution execution = synthetic_execution(step, machine);
  const auto warm = simulated_run(without_times(step), execution, machine);
  EXPECT_EQ(warm.result.tiers[0].peak_reserved, MiB(44));
  EXPECT_EQ(warm.result.tiers[0].peak_allocated, MiB(32)) << "of the first pass: the 14 MiB take all 15 that are left";
}

TEST(MeasuredRun, OfAnExecutionAsSimulatedIsTheSimulation) {
  const Machine machine = machine_with_latencies();
  for (const char* policy : {"offload:what=optimizer,to=host,cpu_adam=0", "offload:what=optimizer,to=host,cpu_adam=1",
                             "offload:what=optimizer,to=nvme", "offload:what=gradients+optimizer,to=host,cpu_adam=0"}) {
    SCOPED_TRACE(policy);
    const Trace step = offload_step(policy), schedule = without_times(step);
    const Execution execution = synthetic_execution(step, machine);
    const auto simulated = simulated_run(schedule, execution, machine);
    expect_equal(measured_run(schedule, execution, machine), simulated);
    EXPECT_GT(simulated.result.links[machine.link("pcie_d2h")].bytes, 3 * kGB);
  }
}

TEST(MeasuredRun, IsARunLikeAnyOther) {
  const Machine machine = machine_with_latencies();
  const Trace step = offload_step(), schedule = without_times(step);
  const Execution execution = slowed(synthetic_execution(step, machine), 1.25);
  const auto run = measured_run(schedule, execution, machine);

  const ScratchFolder folder;
  write_run(run, folder / "measured.h5");
  const auto again = read_run(folder / "measured.h5");
  EXPECT_EQ(again.result.end, run.result.end);
  EXPECT_EQ(again.result.records.size(), run.result.records.size());

  const RunSummary summary = summarize(run);
  EXPECT_EQ(summary.step_time, run.result.end);
  EXPECT_EQ(summary.times.total(), summary.step_time);
  EXPECT_EQ(summary.path.total(), run.result.end);
  EXPECT_GT(summary.times[TimeClass::compute], milliseconds(1000));
  EXPECT_TRUE(summary.fits);

  const auto simulated = simulated_run(schedule, execution, machine);
  const Comparison comparison = compare(simulated, run);
  EXPECT_TRUE(comparison.same_lineage);
  EXPECT_EQ(comparison.ops_added + comparison.ops_removed, 0u);
  EXPECT_EQ(comparison.waterfall.total(), comparison.other_time - comparison.base_time);
  EXPECT_NEAR(to_seconds(run.result.end), 1.25 * to_seconds(simulated.result.end), 1e-6);
}

// Two streams copy in one direction; the second's clock was read when it stood before the engine already.
TEST(MeasuredRun, ACopyThatStoodBeforeItsEngineDidNotMove) {
  const Machine machine = test_machine();
  TraceBuilder b;
  b.trace().name = "two";
  b.add_thread("main");
  std::vector<OpId> copies;
  for (const char* name : {"first", "second"}) {
    const std::uint16_t stream = b.add_stream(name, StreamRole::copy);
    Op op;
    op.kind = OpKind::copy;
    op.stream = stream;
    op.bytes = kGB;
    op.from = b.trace().place("hbm");
    op.to = b.trace().place("host");
    copies.push_back(b.append(op));
  }
  const Trace schedule = std::move(b).finish();
  Execution execution;
  execution.environment = {{"backend", "cuda"}};
  execution.totals = {milliseconds(200)};
  execution.alone.resize(2);
  execution.times = {{microseconds(1), microseconds(2), microseconds(3), milliseconds(100)},
                     {microseconds(2), microseconds(3), microseconds(4), milliseconds(200)}};
  const auto run = measured_run(schedule, execution, machine);
  EXPECT_EQ(run.result.records[copies[1]].start, milliseconds(100));
  EXPECT_EQ(run.result.records[copies[1]].device_reason, WaitReason::copy_engine);
  EXPECT_EQ(run.result.records[copies[1]].device_cause, copies[0]);
  EXPECT_EQ(run.result.links[machine.link("pcie_d2h")].busy, milliseconds(200) - microseconds(3));
}

TEST(MeasuredRun, RefusesTimesThatContradictEachOther) {
  const Machine machine = test_machine();
  const Trace step = activation_chain(2), schedule = without_times(step);
  const Execution good = synthetic_execution(step, machine);
  const auto refused = [&](const Execution& execution, const std::string& part) {
    try {
      measured_run(schedule, execution, machine);
      ADD_FAILURE() << "expected to be refused: " << part;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  Execution bad = good;
  bad.times.pop_back();
  refused(bad, "ops; expected");
  bad = good;
  bad.times[1].host_end = bad.times[1].host_start - nanoseconds(1);
  refused(bad, "op 1 ");
  OpId kernel = 0;
  while (schedule.ops[kernel].kind != OpKind::kernel) ++kernel;
  bad = good;
  bad.times[kernel].end = kNever;
  refused(bad, "op " + std::to_string(kernel) + " (kernel)");
  bad = good;
  bad.times[kernel].end = bad.times[kernel].start - nanoseconds(1);
  refused(bad, "op " + std::to_string(kernel) + " (kernel)");
}

TEST(MeasuredRun, TakesThePeaksThatWereCounted) {
  const Machine machine = test_machine();
  const Trace step = activation_chain(2), schedule = without_times(step);
  Execution execution = synthetic_execution(step, machine);
  execution.peaks = {{"hbm", 3 * kGB, 4 * kGB}};
  const auto run = measured_run(schedule, execution, machine);
  EXPECT_EQ(run.result.tiers[0].peak_allocated, 3 * kGB);
  EXPECT_EQ(run.result.tiers[0].peak_reserved, 4 * kGB);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
