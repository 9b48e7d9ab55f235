// memwall schedule: is what it writes a schedule, and does it say what is in it?
#include <gtest/gtest.h>

#include <sstream>

#include "sim/trace/ranks.h"
#include "sim/trace/trace_check.h"
#include "tests/support/execute_numbered.h"
#include "tests/support/program.h"
#include "traces/trace/trace_file.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSample = "'" MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt'";

class ScheduleVerb : public ::testing::Test {
 protected:
  CommandOutcome run(const std::string& arguments) { return run_memwall(folder_, "schedule " + arguments); }

  void refused(const std::string& arguments, int code, const std::string& part) {
    const CommandOutcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "x.schedule"));
  }

  ScratchFolder folder_;
};

TEST_F(ScheduleVerb, WritesAProgramWithoutTimes) {
  const auto outcome = run(kSample + " --policy offload:what=activations,to=host --scale bytes=1/32,flops=0.001 " +
                           "-o x.schedule --format csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Trace schedule = read_schedule(folder_ / "x.schedule");
  EXPECT_TRUE(is_timeless(schedule));
  EXPECT_EQ(check(schedule), std::vector<std::string>{});
  EXPECT_EQ(not_executable(schedule), "");
  Bytes out = 0;
  int kernels = 0;
  for (const Op& op : schedule.ops) {
    kernels += op.kind == OpKind::kernel;
    if (op.kind == OpKind::copy && schedule.places[op.to] == "host") out += op.bytes;
  }
  EXPECT_GT(out, MiB(100));
  EXPECT_NE(outcome.out.find("transfers,hbm to host,bytes," + std::to_string(out)), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("ops,kernel,ops," + std::to_string(kernels)), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("memory,hbm,allocated_bytes,"), std::string::npos) << outcome.out;
}

// Notes are the job's: with settings of the machine they tell of the other rank's durations, too.
std::string without_notes(const std::string& schedule) {
  std::istringstream lines(schedule);
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("note\t")) kept += line + "\n";
  return kept;
}

// What one GPU of several does is what it does alone, moves of a pager included.
TEST_F(ScheduleVerb, OfSeveralRanksWritesTheOneThatIsAskedFor) {
  const Trace step = read_trace(MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt");
  Trace other = step;
  for (Op& op : other.ops)
    if (op.kind == OpKind::kernel) op.duration /= 2;
  write_trace(joined_ranks({{1, other}, {3, step}}), folder_ / "job.mwt");
  const std::string pager = " --pager lru --set gpu.hbm.capacity=4.5GB";
  for (const std::string& how : {std::string(), std::string(" --policy offload:what=activations,to=host"), pager}) {
    ASSERT_EQ(run(kSample + how + " -o alone.schedule").code, 0);
    const auto outcome = run("job.mwt --rank 3" + how + " -o x.schedule");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(without_notes(content_of(folder_ / "x.schedule")) ==
                without_notes(content_of(folder_ / "alone.schedule")))
        << how;
  }
  EXPECT_NE(content_of(folder_ / "alone.schedule").find("moves written down"), std::string::npos);
  std::filesystem::remove(folder_ / "x.schedule");
  refused("job.mwt -o x.schedule", 2, "a schedule is what one GPU does; expected --rank with one of 1, 3");
  refused("job.mwt --rank 2 -o x.schedule", 2, "--rank 2: job.mwt has no such rank; expected one of 1, 3");
  refused(kSample + " --rank 0 -o x.schedule", 2, "holds one program");
}

TEST_F(ScheduleVerb, WritesTheSameBytesAgain) {
  ASSERT_EQ(run(kSample + " --policy checkpoint:mode=full -o x.schedule").code, 0);
  ASSERT_EQ(run(kSample + " --policy checkpoint:mode=full -o y.schedule").code, 0);
  EXPECT_EQ(content_of(folder_ / "x.schedule"), content_of(folder_ / "y.schedule"));
}

TEST_F(ScheduleVerb, PrintsItForADash) {
  ASSERT_EQ(run(kSample + " -o x.schedule").code, 0);
  const auto outcome = run(kSample + " -o -");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out == content_of(folder_ / "x.schedule")) << "stdout is the schedule and nothing else";
  EXPECT_NE(outcome.err.find("Ops by kind"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "-"));
}

TEST_F(ScheduleVerb, RepeatsTheStep) {
  ASSERT_EQ(run(kSample + " -o x.schedule").code, 0);
  ASSERT_EQ(run(kSample + " --steps 2 -o y.schedule").code, 0);
  EXPECT_EQ(read_schedule(folder_ / "y.schedule").ops.size(), 2 * read_schedule(folder_ / "x.schedule").ops.size());
}

TEST_F(ScheduleVerb, WritesDownWhatAPagerMoves) {
  const auto outcome = run(kSample + " --pager lru --set gpu.hbm.capacity=14GB -o x.schedule");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("moves written down"), std::string::npos) << outcome.out;
  const Trace schedule = read_schedule(folder_ / "x.schedule");
  Bytes out = 0, in = 0;
  for (const Op& op : schedule.ops) {
    if (op.kind != OpKind::copy) continue;
    (schedule.places[op.to] == "host" ? out : in) += op.bytes;
  }
  EXPECT_GT(out, 0);
  EXPECT_GT(in, 0);
}

// What a policy decides, by way of a file: the same program but for what is noted.
TEST_F(ScheduleVerb, CarriesOutAPlan) {
  for (const std::string policy : {"checkpoint:mode=full", "offload:what=activations,to=host"}) {
    const CommandOutcome made =
        run_memwall(folder_, "run " + kSample + " --policy " + policy + " --plan-out x.plan --no-provenance");
    ASSERT_EQ(made.code, 0) << made.err;
    const CommandOutcome outcome = run(kSample + " --plan x.plan -o planned.schedule");
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("plan x.plan: decisions about"), std::string::npos) << outcome.out;
    ASSERT_EQ(run(kSample + " --policy " + policy + " -o policy.schedule").code, 0);
    StepContents planned_contents, contents;
    Trace planned = read_schedule(folder_ / "planned.schedule", &planned_contents);
    Trace by_policy = read_schedule(folder_ / "policy.schedule", &contents);
    planned.notes = by_policy.notes = {};
    EXPECT_EQ(schedule_text(planned), schedule_text(by_policy)) << policy;
    EXPECT_FALSE(planned_contents.empty());
    EXPECT_EQ(planned_contents.uses, contents.uses);
    EXPECT_EQ(planned_contents.initial, contents.initial);
  }
  refused(kSample + " --steps 2 --plan x.plan -o x.schedule", 6, "x.plan");
  refused(kSample + " --plan absent.plan -o x.schedule", 6, "absent.plan");
  refused(kSample + " --plan x.plan -o x.plan", 2, "x.plan");
  const CommandOutcome whole = run(kSample + " -o whole.schedule");
  EXPECT_TRUE(content_of(folder_ / "whole.schedule").starts_with("memwall schedule 1\n")) << "nothing is planned";
}

// A step that was captured with checkpoints has re-runs of its own, which are none of the plan's.
TEST_F(ScheduleVerb, TellsTheStepsOwnRerunsFromThoseOfAPlan) {
  const CommandOutcome outcome = run("'" MEMWALL_SOURCE
                                     "/traces/samples/captures/variants/checkpointed.mwc.gz' --machine h100-sxm-80gb "
                                     "--policy checkpoint --scale bytes=1/64,flops=1e-9 -o x.schedule");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NO_THROW(execute_numbered(folder_ / "x.schedule")) << "every kernel reads what it read without the plan";
}

TEST_F(ScheduleVerb, StandsInForCollectives) {
  const auto outcome = run(kSample + " --policy zero:stage=2,ranks=8 -o x.schedule");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("collectives of 8 ranks are stood in for"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("contents have no numbers, as the step computes something else"), std::string::npos);
  const Trace schedule = read_schedule(folder_ / "x.schedule");
  int collectives = 0;
  for (const Op& op : schedule.ops) {
    if (op.kind != OpKind::collective) continue;
    ++collectives;
    EXPECT_GT(op.duration, Duration{});
    EXPECT_GT(op.waves, 0.0f) << "of the sample's machine, which has multiprocessors for them";
    EXPECT_EQ(schedule.streams[op.stream].role, StreamRole::communication);
  }
  EXPECT_GT(collectives, 10);
}

TEST_F(ScheduleVerb, RefusesWhatMakesNoSense) {
  refused(kSample, 2, "--output");
  refused("absent.mwt -o x.schedule", 6, "absent.mwt");
  refused(kSample + " --scale seconds=2 -o x.schedule", 2, "\"seconds\" cannot be scaled");
  refused(kSample + " --scale bytes=0 -o x.schedule", 2, "has no factor");
  refused(kSample + " --scale bytes=1/0 -o x.schedule", 2, "has no factor");
  refused(kSample + " --scale bytes=nan -o x.schedule", 2, "has no factor");
  refused(kSample + " --scale bytes -o x.schedule", 2, "has no factor");
  refused(kSample + " --scale bytes=2,bytes=3 -o x.schedule", 2, "given twice");
  refused(kSample + " --policy lru -o x.schedule", 2, "is a pager");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
