// A step among many: what the write cache of drives makes of it, against the same step simulated many times in a row.
#include "study/steady_writes.h"

#include <gtest/gtest.h>

#include "sim/trace/repeat.h"
#include "study/study.h"
#include "study/sweep/axis_target.h"
#include "study/sweep/outcome_fields.h"
#include "study/sweep/sweep.h"
#include "tests/support/write_trace.h"
#include "traces/run/analysis/drive_writes.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

memwall::Run settled(const Trace& step, const Machine& machine) {
  Study study;
  study.add_step("step", step);
  study.add_machine(machine.name, machine);
  Scenario scenario;
  scenario.step = {"step"};
  scenario.machine = machine.name;
  scenario.allocator = "ideal";
  return study.run(scenario, {.record = false, .settle_writes = true}).run;
}

// Of so many steps in a row.
Duration last_of(const Trace& step, const Machine& machine, std::uint32_t steps) {
  const SimulationResult result = simulate(repeated(step, steps), machine, {.allocator = "ideal"});
  return result.steps.back().step_time;
}

// Write, compute, write, one after the other on one stream.
Trace in_turns(Bytes before, double seconds, Bytes after) {
  WriteTrace step;
  step.write(0, before, 2e9, "compute");
  step.kernel(0, seconds);
  step.write(0, after, 2e9, "compute");
  step.wait_for_all();
  return step.finish();
}

TEST(SteadyWrites, AreAsSlowAsTheDrivesOnceTheirCacheIsFull) {
  // 3 GB beside 2 s of work: 1.5 s into an empty cache, 3 s at 1 GB/s.
  WriteTrace step;
  step.write(0, 3 * kGigabyte);
  step.kernel(0, 2);
  step.wait_for_all();
  const memwall::Run run = settled(step.finish(), machine_with_write_cache(10 * kGigabyte, 1e9));
  EXPECT_EQ(mean_step(run), from_seconds(2));
  EXPECT_EQ(run.steady_step, from_seconds(3));
}

TEST(SteadyWrites, AreThoseOfALongTraining) {
  for (const auto& [before, seconds, after] : {std::tuple{4, 1.0, 3}, {2, 2.0, 2}, {6, 4.0, 0}, {1, 0.25, 5}}) {
    const Trace step = in_turns(before * kGigabyte, seconds, after * kGigabyte);
    for (const Bytes cache : {kGigabyte / 2, 3 * kGigabyte / 2, 7 * kGigabyte}) {
      const Machine machine = machine_with_write_cache(cache, 1e9);
      const memwall::Run run = settled(step, machine);
      EXPECT_NEAR(to_seconds(run.steady_step), to_seconds(last_of(step, machine, 40)), 1e-9)
          << before << " " << seconds << " " << after << " " << cache;
    }
  }
}

TEST(SteadyWrites, FindWhatTheStepBeforeHasLeft) {
  // 2 GB, 2 s, 2 GB, as much as the drives take in these 4 s. The second write leaves 1 GB of 1.5 GB, so that the first
  // one of the next step goes on at 1 GB/s after 0.5 s, and takes 1.5 s.
  const memwall::Run run =
      settled(in_turns(2 * kGigabyte, 2, 2 * kGigabyte), machine_with_write_cache(1'500'000'000, 1e9));
  EXPECT_EQ(mean_step(run), from_seconds(4));
  EXPECT_EQ(run.steady_step, from_seconds(4.5));
}

TEST(SteadyWrites, OfDrivesThatKeepUpAreTheStepItself) {
  const Trace step = in_turns(2 * kGigabyte, 10, 0);
  const memwall::Run run = settled(step, machine_with_write_cache(10 * kGigabyte, 1e9));
  EXPECT_EQ(run.steady_step, mean_step(run));
  EXPECT_EQ(settled(step, machine_with_write_cache(0, 0)).steady_step, Duration{}) << "nothing is known of a cache";
}

TEST(SteadyWrites, NumberOfStepsIsThatOfALongTraining) {
  WriteTrace step;
  step.write(0, 3 * kGigabyte);
  step.kernel(0, 2);
  step.wait_for_all();
  const Machine machine = machine_with_write_cache(10 * kGigabyte, 1e9);
  const memwall::Run run = settled(step.finish(), machine);
  const auto writes = drive_writes(run)[static_cast<std::size_t>(machine.tier("nvme"))];
  ASSERT_TRUE(writes && writes->full_after_steps);
  const auto steps = static_cast<std::uint32_t>(*writes->full_after_steps);
  const auto link = static_cast<std::size_t>(machine.link("nvme_write"));
  const auto time_full = [&](std::uint32_t count) {
    return simulate(repeated(step.finish(), count), machine, {.allocator = "ideal"}).links[link].cache_full;
  };
  // Full first at the end of the write of a step, before the drives make room again.
  EXPECT_EQ(time_full(steps - 2), Duration{});
  EXPECT_GT(time_full(steps + 1), Duration{});
}

class DriveSweep : public ::testing::Test {
 protected:
  SweepRequest request(const std::vector<std::string>& axes) const {
    SweepRequest r;
    r.base.step = {std::string(MEMWALL_SOURCE) + "/traces/samples/gpt_124m.mwt"};
    r.base.machine = "rtx-3090";
    r.base.policies = {"offload:what=optimizer,to=nvme"};
    for (const std::string& text : axes) r.space.axes.push_back(parse_axis(text));
    return r;
  }

  static double field(const SweepPoint& point, const std::string& name) {
    for (const auto& [own, value] : point.record.fields)
      if (own == name) return value;
    return -1;
  }

  Study study_;
};

TEST_F(DriveSweep, LifeIsAConditionAndEnduranceAnAxis) {
  SweepRequest r = request({"tier.nvme.endurance=600TB|1.2PB|120PB"});
  r.conditions = {"tiers.nvme.drive_life_days > 1825"};
  const SweepResult result = sweep(study_, r, nullptr);
  ASSERT_EQ(result.points.size(), 3u);
  for (const SweepPoint& point : result.points) ASSERT_TRUE(point.ran()) << point.record.error;
  const double life = field(result.points[0], "tiers.nvme.drive_life_days");
  ASSERT_GT(life, 0);
  EXPECT_DOUBLE_EQ(field(result.points[1], "tiers.nvme.drive_life_days"), 2 * life);
  EXPECT_DOUBLE_EQ(field(result.points[2], "tiers.nvme.drive_life_days"), 200 * life);
  for (const SweepPoint& point : result.points)
    EXPECT_EQ(point.meets, field(point, "tiers.nvme.drive_life_days") > 1825);
}

TEST_F(DriveSweep, CacheRateDepthAndBlockAreAxes) {
  SweepRequest r = request({"tier.nvme.write_cache=0GB|216GB", "tier.nvme.sustained_write_bandwidth=0.5GB/s|1GB/s"});
  SweepResult result = sweep(study_, r, nullptr);
  for (const SweepPoint& point : result.points) ASSERT_TRUE(point.ran()) << point.record.error;
  // Without any cache every step is the steady one, and the drives rest while nothing is written. With one they work
  // all the time: the step takes what they need for its bytes.
  for (const std::size_t rate : {std::size_t{0}, std::size_t{1}}) {
    const SweepPoint &none = result.points[rate], &some = result.points[2 + rate];
    EXPECT_DOUBLE_EQ(field(none, "steady_step_time_s"), field(none, "step_time_s"));
    EXPECT_LT(field(some, "step_time_s"), field(some, "steady_step_time_s"));
    EXPECT_LT(field(some, "steady_step_time_s"), field(none, "steady_step_time_s"));
    EXPECT_NEAR(field(some, "steady_step_time_s"), field(some, "tiers.nvme.written_bytes") / (rate == 0 ? 0.5e9 : 1e9),
                1e-9);
  }
  r = request({"route.host_to_nvme.requests.depth=1|4", "route.host_to_nvme.requests.block=64KiB|256KiB"});
  result = sweep(study_, r, nullptr);
  for (const SweepPoint& point : result.points) ASSERT_TRUE(point.ran()) << point.record.error;
  EXPECT_GT(field(result.points[0], "step_time_s"), field(result.points[1], "step_time_s"));
  EXPECT_GT(field(result.points[0], "step_time_s"), field(result.points[2], "step_time_s"));
}

TEST_F(DriveSweep, QuickFieldsAreThoseOfTheJson) {
  const Outcome outcome = study_.run(request({}).base, {.record = false, .settle_writes = true});
  const OutcomeFields quick = quick_fields(outcome.run), all = all_fields(outcome.run);
  for (const char* name : {"tiers.nvme.written_bytes", "tiers.nvme.written_bytes_per_day",
                           "tiers.nvme.drive_writes_per_day", "tiers.nvme.drive_life_days", "steady_step_time_s"}) {
    EXPECT_TRUE(is_quick_field(name)) << name;
    ASSERT_TRUE(quick.find(name)) << name;
    EXPECT_EQ(quick.find(name), all.find(name)) << name;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
