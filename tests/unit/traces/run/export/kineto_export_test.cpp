// Is a run's profile one that profilers' readers take, and does it replay as the run?
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/trace/ranks.h"
#include "tests/support/rank_program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/export/export_kineto.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TimedCapture profile_of(const Run& run, std::uint16_t rank = 0) {
  const ScratchFolder folder;
  {
    std::ofstream out(folder / "profile.json");
    export_kineto(run, rank, out);
  }
  return read_kineto(folder / "profile.json");
}

// A copy beside kernels, an event that a stream waits for, waits of the host for a stream and for the device, backward
// on a thread of its own; `launch`: what a call takes.
Trace varied_step(Duration launch) {
  StepProgram p;
  Trace& t = p.builder().trace();
  t.place("host");
  const std::uint16_t copies = p.builder().add_stream("copies", StreamRole::copy);
  t.event_count = 1;
  const StorageId weight = p.preexisting(MiB(4), StorageKind::parameter, "weight");
  const StorageId made = p.make(MiB(8), "made");
  p.module("layers.0");
  p.op("mm", {weight}, {made}, {.duration = microseconds(40)});
  Op record = p.here(OpKind::event_record);
  record.target = 0;
  p.builder().append(record);
  Op wait = p.here(OpKind::event_wait);
  wait.target = 0;
  wait.stream = copies;
  p.builder().append(wait);
  Op copy = p.here(OpKind::copy);
  copy.name = t.strings.intern("offload of made");
  copy.stream = copies;
  copy.to = 1;
  copy.bytes = 1'000'000;
  copy.duration = microseconds(100);
  p.builder().append(copy);
  Op stream = p.here(OpKind::synchronize);
  stream.wait_for = WaitFor::stream;
  stream.stream = copies;
  p.builder().append(stream);
  p.backward();
  p.op("mm_backward", {made, weight}, {weight}, {.duration = microseconds(70)});
  p.drop(made);
  p.optimizer();
  p.op("adam", {weight}, {weight}, {.duration = microseconds(20)});
  Op device = p.here(OpKind::synchronize);
  device.wait_for = WaitFor::device;
  p.builder().append(device);
  for (Op& op : t.ops)
    if (runs_on_device(op.kind)) op.host_cost = launch;
  return std::move(p).finish();
}

std::map<std::string, int> categories(const TimedCapture& capture) {
  std::map<std::string, int> counts;
  for (const auto& [category, count] : capture.events_by_category)
    if (!category.empty()) counts[category] = static_cast<int>(count);
  return counts;
}

TEST(KinetoExport, HoldsCallsWorkArrowsAndMemory) {
  const memwall::Run run = simulate_and_record(varied_step(microseconds(3)), test_machine(), {});
  const TimedCapture capture = profile_of(run);
  EXPECT_EQ(categories(capture), (std::map<std::string, int>{{"ac2g", 8},
                                                             {"cpu_instant_event", 2},
                                                             {"cpu_op", 4},
                                                             {"cuda_runtime", 8},
                                                             {"cuda_sync", 3},
                                                             {"gpu_memcpy", 1},
                                                             {"kernel", 3},
                                                             {"user_annotation", 2 + 3}}));
  ASSERT_EQ(capture.device_ops.size(), 4u);
  for (const CapturedDeviceOp& op : capture.device_ops) {
    const auto call = std::ranges::find(capture.calls, op.correlation, &CapturedCall::correlation);
    ASSERT_NE(call, capture.calls.end());
    EXPECT_GE(op.start, call->end()) << "no launch latency, and no work before its launch";
    EXPECT_GT(op.stream, 0) << "readers take 0 for no stream";
  }
  EXPECT_EQ(capture.text(capture.device_ops[1].name), "Memcpy DtoH (Device -> Pinned)");
  EXPECT_EQ(capture.device_ops[1].bytes, 1'000'000);
  EXPECT_EQ(capture.memory[0].bytes, MiB(8));
  EXPECT_EQ(capture.memory[0].total_allocated, MiB(12));
  EXPECT_EQ(capture.memory[1].bytes, -MiB(8));
  EXPECT_EQ(capture.world_size, 1);
}

// Where calls are so short that no work starts for its launch alone: four pieces of work do not tell what a launch
// takes.
TEST(KinetoExport, ImportedItTakesTheSameTime) {
  for (const Duration launch : {microseconds(1), microseconds(3), microseconds(20)}) {
    const memwall::Run run = simulate_and_record(varied_step(launch), test_machine(), {});
    const ImportedTrace imported = import_timed_capture(profile_of(run));
    const memwall::Run again = simulate_and_record(imported.trace, test_machine(), {});
    EXPECT_NEAR(static_cast<double>(mean_step(again).count()), static_cast<double>(mean_step(run).count()), 2e4)
        << "20 ns";
    EXPECT_EQ(again.result.tiers[0].peak_allocated, run.result.tiers[0].peak_allocated);
    std::map<Phase, int> phases;
    for (const Op& op : imported.trace.ops)
      if (op.kind == OpKind::kernel) ++phases[op.phase];
    EXPECT_EQ(phases, (std::map<Phase, int>{{Phase::forward, 1}, {Phase::backward, 1}, {Phase::optimizer, 1}}));
    EXPECT_EQ(imported.summary.given_edges, 1u);
  }
}

TEST(KinetoExport, AChangedProfileTakesAnotherTime) {
  const memwall::Run run = simulate_and_record(varied_step(microseconds(3)), test_machine(), {});
  TimedCapture capture = profile_of(run);
  capture.syncs.clear();
  for (CapturedDeviceOp& op : capture.device_ops) op.duration += microseconds(5);
  const memwall::Run again = simulate_and_record(import_timed_capture(capture).trace, test_machine(), {});
  EXPECT_GT(mean_step(again) - mean_step(run), microseconds(4));
}

TEST(KinetoExport, EachRankHasAProfileThatSaysWhoseItIs) {
  std::vector<RankProgram> programs;
  for (std::uint32_t number : {0u, 3u}) {
    RankAuthor author(number);
    author.kernel(microseconds(10 + number));
    author.meet(0, microseconds(20));
    programs.push_back(std::move(author).finish());
  }
  const memwall::Run run = simulate_and_record(joined_ranks(std::move(programs)), test_machine(), {});
  for (std::uint16_t rank : {std::uint16_t{0}, std::uint16_t{1}}) {
    const TimedCapture capture = profile_of(run, rank);
    EXPECT_EQ(capture.rank, rank == 0 ? 0 : 3);
    EXPECT_EQ(capture.world_size, 8);
    ASSERT_EQ(capture.device_ops.size(), 2u);
    EXPECT_EQ(capture.text(capture.device_ops[1].name), "ncclDevKernel_AllReduce");
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
