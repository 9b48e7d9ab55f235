// The executor: what it asks of a back end, in which order, and what it notices.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "sim/error.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/races.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/scripted_backend.h"
#include "validate/replay/execution.h"
#include "validate/replay/execution_summary.h"
#include "validate/replay/host_backend.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const char* const kPolicies[] = {"offload:what=activations,to=host,min_bytes=0",
                                 "offload:what=activations,to=host,pinned=0,min_bytes=0",
                                 "offload:what=activations,to=nvme,min_bytes=0",
                                 "offload:what=optimizer,to=host",
                                 "offload:what=optimizer,to=nvme",
                                 "checkpoint:mode=full"};

Trace schedule_under(const std::string& policy, int steps = 1) {
  GptShape shape;
  shape.steps = steps;
  const Trace trace = gpt_step(shape);
  return schedule_of(policy.empty() ? trace : rewritten(trace, policy));
}

ExecutionSettings passes(std::uint32_t count) {
  ExecutionSettings settings;
  settings.passes = count;
  return settings;
}

// The sentence with which executing ends, "" if it succeeds.
std::string failure(const Trace& schedule, ScriptedBackend& backend, const ExecutionSettings& settings = passes(1)) {
  try {
    execute(schedule, backend, settings);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// A kernel makes 'a', a copy takes it to the host, and the host waits for an event.
Trace round_trip() {
  TraceBuilder b;
  b.trace().name = "round trip";
  b.add_thread("main");
  const std::uint16_t compute = b.add_stream("compute", StreamRole::compute);
  const std::uint16_t out = b.add_stream("out", StreamRole::copy);
  const StorageId a = b.add_storage(5000, StorageKind::activation, "hbm", "a");
  const StorageId far = b.add_storage(5000, StorageKind::activation, "host", "far");
  b.trace().storages[far].pinned = true;
  const std::uint32_t made = b.add_event(), gone = b.add_event();
  b.alloc(a, 0);
  b.alloc(far, 0);
  Op kernel;
  kernel.kind = OpKind::kernel;
  kernel.stream = compute;
  kernel.bytes = 5000;
  b.append(kernel, std::vector<Use>{{a, 0, Access::write}});
  b.record(made, compute, 0);
  b.wait(made, out, 0);
  Op copy;
  copy.kind = OpKind::copy;
  copy.stream = out;
  copy.bytes = 5000;
  copy.from = b.trace().place("hbm");
  copy.to = b.trace().place("host");
  b.append(copy, std::vector<Use>{{a, TraceBuilder::kLatest, Access::read}, {far, 0, Access::write}});
  b.record(gone, out, 0);
  Op synchronize;
  synchronize.kind = OpKind::synchronize;
  synchronize.wait_for = WaitFor::event;
  synchronize.target = gone;
  b.append(synchronize);
  b.free(a, 0);
  Op work;
  work.kind = OpKind::host_work;
  work.bytes = 5000;
  b.append(work, std::vector<Use>{{far, TraceBuilder::kLatest, Access::read}});
  b.free(far, 0);
  return schedule_of(std::move(b).finish());
}

TEST(Executor, CallsInTheScheduleSOrder) {
  ScriptedBackend backend;
  const Execution e = execute(round_trip(), backend, passes(1));
  const std::vector<std::string> expected = {"prepare timed",
                                             "kernel 2",
                                             "record 0",
                                             "wait 0",
                                             "copy 5",
                                             "record 1",
                                             "synchronize event 1",
                                             "host_work 9",
                                             "synchronize stream 0",
                                             "synchronize stream 1",
                                             "synchronize device"};
  EXPECT_EQ(backend.calls(), expected);
  EXPECT_EQ(e.integrity.mismatches, 0u);
  EXPECT_EQ(e.integrity.checks, 2u);  // the copy's source, the host's work
  EXPECT_EQ(e.integrity.bytes, 10'000u);
  EXPECT_EQ(value_of(e.environment, "backend"), "scripted");
  EXPECT_EQ(value_of(e.environment, "date").size(), 10u);
}

TEST(Executor, TheDeviceDoesNotWaitForStorage) {
  for (const bool queue : {false, true}) {
    TraceBuilder b;
    b.add_thread("main");
    b.add_stream("compute", StreamRole::compute);
    b.add_stream("other", queue ? StreamRole::storage : StreamRole::copy);
    Op synchronize;
    synchronize.kind = OpKind::synchronize;
    synchronize.wait_for = WaitFor::device;
    b.append(synchronize);
    ScriptedBackend backend;
    execute(schedule_of(std::move(b).finish()), backend, passes(1));
    EXPECT_EQ(backend.calls()[1], queue ? "synchronize stream 0" : "synchronize device");
    EXPECT_EQ(backend.calls().size(), 5u);  // and at the end both streams and the device
  }
}

TEST(Executor, TimesAreTheBackEndS) {
  ScriptedBackend backend;
  const Trace schedule = round_trip();
  const Execution e = execute(schedule, backend, passes(4));
  EXPECT_EQ(backend.passes, 5u);
  ASSERT_EQ(e.totals.size(), 4u);
  ASSERT_EQ(e.times.size(), schedule.ops.size());
  EXPECT_EQ(e.times[0].host_start, Time{});
  for (OpId id = 0; id < e.times.size(); ++id) {
    EXPECT_LT(e.times[id].host_start, e.times[id].host_end);
    if (id > 0) {
      EXPECT_GT(e.times[id].host_start, e.times[id - 1].host_start);
    }
    EXPECT_EQ(e.times[id].start != kNever, runs_on_device(schedule.ops[id].kind));
    if (e.times[id].start == kNever) continue;
    EXPECT_GE(e.times[id].start, e.times[id].host_start);
    EXPECT_LT(e.times[id].start, e.times[id].end);
    EXPECT_LE(e.times[id].end, e.totals[e.chosen]);
  }
  // The clock only counts, so every pass takes equally long, and so does another execution.
  EXPECT_EQ(std::set<Duration>(e.totals.begin(), e.totals.end()).size(), 1u);
  ScriptedBackend again;
  EXPECT_EQ(execution_text(execute(schedule, again, passes(4))), execution_text(e));
}

TEST(Executor, NoPassBeginsAfterTheTimeIsOver) {
  ScriptedBackend backend;
  ExecutionSettings settings = passes(1000);
  settings.seconds = 0;
  std::vector<std::string> told;
  settings.progress = [&](const std::string& what) { told.push_back(what); };
  EXPECT_EQ(execute(round_trip(), backend, settings).totals.size(), 1u);
  EXPECT_EQ(told, (std::vector<std::string>{"checked pass", "timed pass 1 of 1000", "stand-alone times"}));
}

TEST(Executor, StandAloneTimesAreAskedOncePerKernel) {
  ScriptedBackend backend;
  const Trace schedule = schedule_under("offload:what=optimizer,to=host", 2);
  const Execution e = execute(schedule, backend, passes(1));
  std::set<std::tuple<OperatorClass, DataType, double, Bytes>> distinct;
  for (OpId id = 0; id < schedule.ops.size(); ++id) {
    const Op& op = schedule.ops[id];
    Duration expected{};
    if (op.kind == OpKind::kernel) {
      distinct.insert({op.operator_class, op.data_type, op.flops, op.bytes});
      expected = microseconds(1) + nanoseconds(op.bytes);
    }
    if (op.kind == OpKind::host_work) expected = nanoseconds(op.bytes);
    EXPECT_EQ(e.alone[id], expected);
  }
  EXPECT_EQ(backend.kernels_alone, distinct.size());
}

TEST(Executor, ContentsAreRightUnderEveryPolicy) {
  for (const std::string policy : kPolicies) {
    for (const int steps : {1, 2}) {
      ScriptedBackend backend;
      const Trace schedule = schedule_under(policy, steps);
      Execution e;
      ASSERT_NO_THROW(e = execute(schedule, backend, passes(2))) << policy;
      EXPECT_GT(e.integrity.checks, 100u) << policy;
      EXPECT_EQ(backend.live_segments, 0u);
      EXPECT_EQ(backend.live_host, 0u);
    }
  }
}

// Streams that run as late as they may show every wait that is missing where data come back.
TEST(Executor, AMissingWaitIsSeen) {
  for (const char* policy :
       {"offload:what=activations,to=host,min_bytes=0", "offload:what=activations,to=nvme,min_bytes=0"}) {
    const Trace schedule = schedule_under(policy);
    std::size_t tried = 0;
    for (OpId id = 0; id < schedule.ops.size(); ++id) {
      const Op& op = schedule.ops[id];
      if (op.kind != OpKind::event_wait || schedule.streams[op.stream].role != StreamRole::compute) continue;
      Trace damaged = schedule;
      damaged.ops[id].kind = OpKind::mark;
      const std::vector<std::string> found = races(damaged, 1000);
      const bool stale = std::any_of(found.begin(), found.end(), [](const std::string& race) {
        return race.find("does not wait for what wrote") != std::string::npos;
      });
      if (!stale) continue;  // another wait covers it
      ++tried;
      ScriptedBackend backend;
      const std::string sentence = failure(damaged, backend);
      EXPECT_NE(sentence.find("came to wrong contents"), std::string::npos) << policy << ", wait " << id;
      EXPECT_NE(sentence.find("op "), std::string::npos) << sentence;
      EXPECT_EQ(backend.live_segments + backend.live_host, 0u);
    }
    EXPECT_GT(tried, 5u) << policy;
  }
}

// A word, not a byte: one in 256 bytes happens to be what was there before.
TEST(Executor, ALostWordIsSeen) {
  const Trace schedule = schedule_under(kPolicies[0]);
  std::size_t copies = 0;
  for (OpId id = 0; id < schedule.ops.size() && copies < 8; ++id) {
    if (schedule.ops[id].kind != OpKind::copy) continue;
    ++copies;
    ScriptedSettings settings;
    settings.loses_word_at = id;
    ScriptedBackend backend(settings);
    EXPECT_NE(failure(schedule, backend).find("came to wrong contents"), std::string::npos) << "copy " << id;
  }
  EXPECT_EQ(copies, 8u);
}

TEST(Executor, WhatDoesNotFitIsMissingBytes) {
  const Trace schedule = schedule_under(kPolicies[0]);
  {
    ScriptedBackend backend;
    ExecutionSettings settings = passes(1);
    settings.capacity = MiB(1);
    EXPECT_NE(failure(schedule, backend, settings).find("lives before the first op, takes"), std::string::npos);
    EXPECT_EQ(backend.live_segments + backend.live_host, 0u);
  }
  {
    // 2 MiB hold everything but an allocation of 3.
    TraceBuilder b;
    b.add_thread("main");
    b.add_stream("compute", StreamRole::compute);
    b.alloc(b.add_storage(MiB(1), StorageKind::workspace, "hbm", "first"), 0);
    b.alloc(b.add_storage(MiB(3), StorageKind::workspace, "hbm", "second"), 0);
    ScriptedBackend backend;
    ExecutionSettings settings = passes(1);
    settings.capacity = MiB(2);
    const std::string sentence = failure(schedule_of(std::move(b).finish()), backend, settings);
    EXPECT_NE(sentence.find("op 1 (alloc) takes 3145728 bytes while 1048576 are in use and 2097152 reserved of 2097152"
                            "; at least 2097152 bytes are missing."),
              std::string::npos)
        << sentence;
  }
  for (const bool file : {false, true}) {
    ScriptedSettings settings;
    (file ? settings.file_capacity : settings.host_capacity) = 8192;
    ScriptedBackend backend(settings);
    const std::string sentence = failure(schedule_under(kPolicies[file ? 2 : 0]), backend);
    EXPECT_NE(sentence.find("bytes are missing"), std::string::npos) << sentence;
    EXPECT_NE(sentence.find(file ? "the file that stands for NVMe" : "page-locked host memory"), std::string::npos);
    EXPECT_EQ(backend.live_segments + backend.live_host, 0u);
  }
}

// Both threads end, whichever waits for the other.
TEST(Executor, AFailureOnOneThreadEndsAll) {
  const Trace schedule = schedule_under("");
  std::size_t tried = 0;
  for (OpId id = 0; id < schedule.ops.size(); id += 17) {
    if (schedule.ops[id].kind != OpKind::kernel) continue;
    ScriptedSettings settings;
    settings.fails_at = id;
    ScriptedBackend backend(settings);
    EXPECT_EQ(failure(schedule, backend), "kernel " + std::to_string(id) + " failed");
    EXPECT_EQ(backend.live_segments + backend.live_host, 0u);
    ++tried;
  }
  EXPECT_GT(tried, 3u);
}

TEST(Executor, HandOversKeepTheOrderOfThreads) {
  const Trace schedule = schedule_under("", 2);
  std::set<std::uint16_t> threads;
  std::vector<std::string> expected;
  for (OpId id = 0; id < schedule.ops.size(); ++id) {
    threads.insert(schedule.ops[id].thread);
    if (schedule.ops[id].kind == OpKind::kernel) expected.push_back("kernel " + std::to_string(id));
  }
  ASSERT_EQ(threads.size(), 2u);
  ScriptedBackend backend;
  execute(schedule, backend, passes(1));
  std::vector<std::string> kernels = backend.calls();
  std::erase_if(kernels, [](const std::string& call) { return !call.starts_with("kernel"); });
  EXPECT_EQ(kernels, expected);
}

TEST(Executor, TimedPassesObtainNoMemory) {
  const Trace schedule = schedule_under(kPolicies[2], 2);
  ScriptedBackend once, often;
  execute(schedule, once, passes(1));
  execute(schedule, often, passes(6));
  EXPECT_GT(once.segments, 0u);
  EXPECT_EQ(once.segments, often.segments);
  EXPECT_EQ(once.host_allocations, often.host_allocations);
}

TEST(Executor, PeaksAreTheSimulatorS) {
  for (const std::string policy : kPolicies) {
    const Trace schedule = schedule_under(policy);
    ScriptedBackend backend;
    const Execution e = execute(schedule, backend, passes(1));
    const Machine machine = test_machine();
    const SimulationResult result = simulate(schedule, machine, {});
    ASSERT_FALSE(e.peaks.empty());
    EXPECT_EQ(e.peaks[0].place, "hbm");
    for (const PlacePeak& peak : e.peaks)
      EXPECT_EQ(peak.allocated, result.tiers[machine.tier(peak.place)].peak_allocated) << policy << peak.place;
    EXPECT_GE(e.peaks[0].reserved, e.peaks[0].allocated);
  }
}

// Per stream one op after the other; nothing before it was asked for; waits are waits.
void expect_consistent(const Trace& schedule, const Execution& e) {
  std::vector<Time> stream_end(schedule.streams.size(), Time{});
  std::vector<Time> thread_end(schedule.threads.size(), Time{});
  std::vector<Time> event_end(schedule.event_count, Time{}), pending(schedule.streams.size(), Time{});
  for (OpId id = 0; id < schedule.ops.size(); ++id) {
    const Op& op = schedule.ops[id];
    const OpTimes& times = e.times[id];
    EXPECT_GE(times.host_start, thread_end[op.thread]) << id;
    EXPECT_GE(times.host_end, times.host_start) << id;
    thread_end[op.thread] = times.host_end;
    if (op.kind == OpKind::hand_over) {
      EXPECT_GE(times.host_end, e.times[op.target].host_end) << id;
    }
    if (op.kind == OpKind::event_record) event_end[op.target] = std::max(stream_end[op.stream], pending[op.stream]);
    if (op.kind == OpKind::event_wait) pending[op.stream] = std::max(pending[op.stream], event_end[op.target]);
    if (op.kind == OpKind::synchronize && op.wait_for == WaitFor::event) {
      EXPECT_GE(times.host_end, event_end[op.target]) << id;
    }
    if (!runs_on_device(op.kind)) continue;
    EXPECT_GE(times.start, times.host_start) << id;
    EXPECT_GE(times.start, stream_end[op.stream]) << id;
    EXPECT_GE(times.start, pending[op.stream]) << id;
    EXPECT_GE(times.end, times.start) << id;
    if (op.wait_for != WaitFor::nothing) {
      EXPECT_GE(times.host_end, times.end) << id;
    }
    stream_end[op.stream] = times.end;
  }
}

TEST(Executor, TheHostBackEndExecutesEveryPolicy) {
  const ScratchFolder folder;
  HostBackendSettings settings;
  settings.device_capacity = MiB(64);
  settings.host_to_device = settings.device_to_host = settings.within_device = 2e8;
  settings.copy_latency = microseconds(1);
  settings.scratch = folder.path();
  settings.file_bytes = MiB(64);
  for (const std::string policy : kPolicies) {
    const std::unique_ptr<Backend> backend = make_host_backend(settings);
    const Trace schedule = schedule_under(policy);
    Execution e;
    ASSERT_NO_THROW(e = execute(schedule, *backend, passes(3))) << policy;
    std::vector<Duration> totals = e.totals;
    std::sort(totals.begin(), totals.end());
    EXPECT_EQ(e.totals.at(e.chosen), totals.at(1)) << "the median";
    EXPECT_GT(e.integrity.checks, 100u) << policy;
    EXPECT_EQ(value_of(e.environment, "backend"), "host");
    expect_consistent(schedule, e);
    EXPECT_EQ(execution_text(parse_execution(execution_text(e), "x")), execution_text(e));
    const std::string summary = execution_summary(schedule, e);
    EXPECT_NE(summary.find("median of 3 passes"), std::string::npos) << summary;
    EXPECT_NE(summary.find("0 mismatches"), std::string::npos) << summary;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
