// Collectives of several ranks in schedules: what stands in for them on one GPU, and does it say so?
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/program.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scripted_backend.h"
#include "tests/support/shared_data.h"
#include "tests/support/small_schedule.h"
#include "validate/replay/execution.h"
#include "validate/replay/execution_summary.h"
#include "validate/replay/host_backend.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

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

// One thread, one compute stream, one storage of 4096 bytes on the device.
struct SmallCollective {
  TraceBuilder b;
  StorageId device = kNoStorage;

  SmallCollective() {
    b.trace().name = "small";
    b.add_thread("main");
    b.add_stream("compute", StreamRole::compute);
    device = b.add_storage(4096, StorageKind::activation, "hbm", "device", true);
    b.add_storage(4096, StorageKind::activation, "host", "host", true);
  }

  Op collective() {
    Op o;
    o.kind = OpKind::collective;
    o.bytes = 64;
    o.duration = microseconds(7);
    return o;
  }
};

// Of several ranks: a stand-in, which says of how many, how long it takes, and what of the GPU.
TEST(Collective, OfSeveralRanksIsStoodIn) {
  SmallCollective s;
  s.b.add_stream("communication", StreamRole::communication);
  Op op = s.collective();
  op.stream = 1;
  op.collective = CollectiveKind::all_reduce;
  op.duration = nanoseconds(7001) + Duration(400);  // picoseconds
  op.group = 3;
  s.b.append(op, std::vector<Use>{{s.device, TraceBuilder::kLatest, Access::read}, {s.device, 0, Access::write}});
  s.b.trace().groups = {{}, {}, {}, {"data parallel", 4, {0, 1, 2, 3}}};
  op.group = 7;  // not listed: the job's
  s.b.append(op);
  s.b.trace().job_ranks = 16;
  const Trace schedule = schedule_of(std::move(s.b).finish(), {}, 0.25);
  EXPECT_EQ(not_executable(schedule), "");
  ASSERT_EQ(schedule.ops[0].kind, OpKind::collective);
  EXPECT_EQ(schedule.ops[0].duration, nanoseconds(7001));
  EXPECT_EQ(schedule.ops[0].waves, 0.25f);
  EXPECT_EQ(schedule.groups[schedule.ops[0].group].ranks, 4u);
  EXPECT_EQ(schedule.groups[schedule.ops[1].group].ranks, 16u);
  EXPECT_TRUE(is_timeless(schedule)) << "that of a collective is given, and is the only one";
  EXPECT_TRUE(has_note(schedule,
                       "1 collectives of 4 ranks are stood in for: on one GPU each is a kernel that lasts as "
                       "long as in the trace, on 25 % of the multiprocessors"));
  const std::string text = schedule_text(schedule);
  EXPECT_TRUE(text.starts_with("memwall schedule 2\n"));
  EXPECT_NE(text.find("\nplace\thost\ngroup\t-\t4\ngroup\t-\t16\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\tr0:0,w0:1\tall_reduce\t0\t7001\t0.25\n"), std::string::npos) << text;
  const Trace read = parse_schedule(text, "x.schedule");
  EXPECT_EQ(schedule_text(read), text);
  EXPECT_EQ(read.ops[0].duration, nanoseconds(7001));
  EXPECT_EQ(parse_refusal(changed(text, "\t7001\t0.25", "\t0\t0.25")).find("x.schedule:"), 0u);
  EXPECT_NE(parse_refusal(changed(text, "\t7001\t0.25", "\t600000000001\t0.25")).find("ten minutes"),
            std::string::npos);
  EXPECT_NE(parse_refusal(changed(text, "\t7001\t0.25", "\t7001\t1.5")).find("from 0 to 1"), std::string::npos);
  EXPECT_NE(parse_refusal(changed(text, "all_reduce\t0", "all_reduce\t2")).find("group that is not listed"),
            std::string::npos);
  EXPECT_NE(parse_refusal(changed(text, "group\t-\t4", "group\t-\t1")).find("of one rank; expected a kernel"),
            std::string::npos);
}

// Over one rank there is nobody to talk to; where nobody says how many there are, the time tells.
TEST(Collective, OfOneRankIsAKernel) {
  SmallCollective s;
  s.b.append(s.collective());
  s.b.trace().job_ranks = 1;
  const Trace alone = schedule_of(s.b.trace());
  EXPECT_EQ(alone.ops[0].kind, OpKind::kernel);
  EXPECT_EQ(alone.ops[0].bytes, 128);
  EXPECT_EQ(alone.ops[0].duration, Duration{});
  s.b.trace().job_ranks = 0;
  const Trace unknown = schedule_of(s.b.trace());
  EXPECT_EQ(unknown.ops[0].kind, OpKind::collective);
  EXPECT_TRUE(has_note(unknown, "of an unknown number of ranks are stood in for"));
  EXPECT_TRUE(has_note(schedule_of(s.b.trace(), {0.5, 1}), "bytes scaled"));
  EXPECT_EQ(schedule_of(s.b.trace(), {0.5, 1}).ops[0].duration, nanoseconds(3500)) << "scaled as its bytes";
}

// A kernel makes 'a', a collective of 8 ranks changes it on a stream of its own, a kernel reads it.
Trace reduction(Duration duration, float share) {
  TraceBuilder b;
  b.trace().name = "reduction";
  b.trace().ranks = 8;
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  const std::uint16_t communication = b.add_stream("communication", StreamRole::communication);
  const StorageId a = b.add_storage(5000, StorageKind::gradient, "hbm", "a", true);
  const std::uint32_t made = b.add_event(), reduced = b.add_event();
  Op kernel;
  kernel.kind = OpKind::kernel;
  kernel.bytes = 5000;
  b.append(kernel, std::vector<Use>{{a, 0, Access::write}});
  b.record(made, 0, 0);
  b.wait(made, communication, 0);
  Op collective;
  collective.kind = OpKind::collective;
  collective.collective = CollectiveKind::all_reduce;
  collective.stream = communication;
  collective.bytes = 8750;
  collective.duration = duration;
  b.append(collective, std::vector<Use>{{a, TraceBuilder::kLatest, Access::read}, {a, 0, Access::write}});
  b.record(reduced, communication, 0);
  b.wait(reduced, 0, 0);
  b.append(kernel, std::vector<Use>{{a, TraceBuilder::kLatest, Access::read}});
  return schedule_of(std::move(b).finish(), {}, static_cast<double>(share));
}

TEST(Collective, IsExecutedInTheOrderOfItsEvents) {
  ScriptedBackend backend;
  const Trace schedule = reduction(microseconds(30), 0.25f);
  const Execution e = execute(schedule, backend, passes(1));
  const std::vector<std::string> calls = backend.calls();
  EXPECT_NE(std::find(calls.begin(), calls.end(), "collective 3"), calls.end());
  EXPECT_EQ(e.integrity.checks, 2u) << "what it reads, and what the kernel behind it reads";
  EXPECT_EQ(e.alone[3], microseconds(30));
  EXPECT_EQ(value_of(e.environment, "collectives"), "1 stand-in for a collective of 8 ranks");
  EXPECT_NE(execution_summary(schedule, e).find("collective 1 stand-in for a collective of 8 ranks, "),
            std::string::npos);
  EXPECT_EQ(value_of(execute(schedule_of(gpt_step({})), backend, passes(1)).environment, "collectives"), "");
  // It does not begin before what it reads is there, nor does who reads its result.
  for (const OpId wait : {OpId{2}, OpId{5}}) {
    ASSERT_EQ(schedule.ops[wait].kind, OpKind::event_wait);
    Trace damaged = schedule;
    damaged.ops[wait].kind = OpKind::mark;
    EXPECT_EQ(failure(damaged, backend).find("came to wrong contents") != std::string::npos, wait == 5) << wait;
  }
}

TEST(Collective, OnTheHostBackEndLastsAsLongAsItIsTold) {
  HostBackendSettings settings;
  settings.device_capacity = MiB(16);
  settings.host_to_device = settings.device_to_host = settings.within_device = 1e8;
  for (const float share : {0.0f, 0.5f, 1.0f}) {
    const auto backend = make_host_backend(settings);
    const Execution e = execute(reduction(microseconds(3000), share), *backend, passes(2));
    const Duration lasted = e.times[3].end - e.times[3].start;
    EXPECT_GE(lasted, microseconds(3000)) << share;
    EXPECT_GE(e.alone[3], microseconds(3000)) << share;
    EXPECT_EQ(e.integrity.mismatches, 0u);
    EXPECT_GE(e.times[6].start, e.times[3].end);
  }
  const auto backend = make_host_backend(settings);
  Trace endless = reduction(nanoseconds(500'000'000'000), 0.5f);
  endless.ops.insert(endless.ops.end(), 2, endless.ops[3]);
  for (std::size_t i = endless.ops.size() - 2; i < endless.ops.size(); ++i)
    endless.ops[i].first_use = endless.ops[i].use_count = 0;
  std::string sentence;
  try {
    execute(endless, *backend, passes(1));
  } catch (const UsageError& error) {
    sentence = error.what();
  }
  EXPECT_NE(sentence.find("has collectives of"), std::string::npos) << sentence;
}

TEST(Collective, TakesAtLeastOneMultiprocessor) {
  EXPECT_EQ(multiprocessors_of({microseconds(1), 0.25}, 132), 33u);
  EXPECT_EQ(multiprocessors_of({microseconds(1), 24.0 / 132}, 132), 24u);
  EXPECT_EQ(multiprocessors_of({microseconds(1), 1}, 132), 132u);
  EXPECT_EQ(multiprocessors_of({microseconds(1), 0}, 132), 1u);
}

// One of eight ranks, whose collectives nobody else takes part in here.
TEST(Collective, OfACapturedRankOfDlrmIsStoodIn) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const ScratchFolder folder;
  const auto rank = [&](const char* file) { return "'" + (*data / "traces/dlrm_8xv100" / file).string() + "' "; };
  const CommandOutcome outcome =
      run_memwall(folder, "schedule " + rank("rank0.kineto.json.gz") + "--et " + rank("rank0.et.json.gz") +
                              "--scale bytes=1/1024 -o x.schedule");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Trace schedule = read_schedule(folder / "x.schedule");
  EXPECT_TRUE(has_note(schedule, "8 collectives of 8 ranks are stood in for"));
  EXPECT_EQ(std::count_if(schedule.ops.begin(), schedule.ops.end(),
                          [](const Op& op) { return op.kind == OpKind::collective; }),
            8);
  ScriptedBackend backend;
  ExecutionSettings settings;
  settings.passes = 1;
  const Execution e = execute(schedule, backend, settings);
  EXPECT_EQ(value_of(e.environment, "collectives"), "8 stand-ins for collectives of 8 ranks");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
