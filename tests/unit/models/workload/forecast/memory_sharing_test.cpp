// Sharing one GPU: splits by hand, schedules that never pass the capacity, MIG instances that exist.
#include "models/workload/forecast/sharing.h"

#include <gtest/gtest.h>

#include <numeric>

#include "models/hw/machine_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

SharedJob job(std::vector<double> step, double seconds = 1, std::optional<double> busy = {}) {
  return {.name = "job", .step = std::move(step), .seconds = seconds, .gpu_busy = busy};
}

TEST(StaticSplit, EquallyAndByPeak) {
  const std::vector<SharedJob> jobs{job({2, 10, 2}), job({5, 30, 5}), job({1, 20, 1})};
  const StaticSplit equal = split_equally(jobs, 80);
  EXPECT_EQ(equal.parts[0].bytes, 26);
  EXPECT_TRUE(equal.parts[0].fits);
  EXPECT_FALSE(equal.parts[1].fits);  // 30 > 26
  EXPECT_TRUE(equal.parts[2].fits);
  EXPECT_FALSE(equal.all_fit());
  // 20 are over and go 10 : 30 : 20.
  const StaticSplit by_peak = split_by_peak(jobs, 80);
  EXPECT_EQ(by_peak.parts[0].bytes, 13);
  EXPECT_EQ(by_peak.parts[1].bytes, 40);
  EXPECT_EQ(by_peak.parts[2].bytes, 26);
  EXPECT_TRUE(by_peak.all_fit());
  EXPECT_TRUE(split_by_peak(jobs, 60).all_fit());
  const StaticSplit short_of_one = split_by_peak(jobs, 59);
  EXPECT_FALSE(short_of_one.all_fit());
  for (const Bytes capacity : {1, 59, 60, 61, 1000}) {
    Bytes sum = 0;
    for (const auto& part : split_by_peak(jobs, capacity).parts) sum += part.bytes;
    EXPECT_LE(sum, capacity);
  }
}

// Two equal jobs whose second half is low: together they fit only half a step apart.
TEST(DynamicShare, StepsThatDoNotFitAtOnceFitShifted) {
  const std::vector<SharedJob> jobs{job({10, 10, 1, 1}), job({10, 10, 1, 1})};
  // At rest 10 each (the first sample): the high halves may overlap with nothing less.
  const DynamicShare together = share_by_forecast(jobs, 20, 3);
  EXPECT_TRUE(together.possible);
  EXPECT_EQ(std::accumulate(together.waiting.begin(), together.waiting.end(), std::int64_t{0}), 0);
  EXPECT_EQ(together.makespan, 3 * together.ticks_per_step);
  EXPECT_FALSE(share_by_forecast(jobs, 19, 3).possible) << "10 at rest each";

  const std::vector<SharedJob> low{job({1, 10, 10, 1, 1, 1, 1, 1}), job({1, 10, 10, 1, 1, 1, 1, 1})};
  const DynamicShare shifted = share_by_forecast(low, 12, 1);
  ASSERT_TRUE(shifted.possible);
  // The second waits until its peak follows the first one's: a quarter of a step, which is 64 ticks.
  EXPECT_EQ(shifted.waiting, (std::vector<std::int64_t>{0, 16}));
  EXPECT_EQ(shifted.makespan, 80);
  EXPECT_EQ(shifted.one_after_the_other, 128);
  EXPECT_DOUBLE_EQ(shifted.seconds_per_tick, 1.0 / 64);
  const DynamicShare roomy = share_by_forecast(low, 20, 1);
  EXPECT_EQ(roomy.makespan, 64);
}

TEST(DynamicShare, AStepThatFitsOnlyAloneWaitsUntilTheOthersHaveLeft) {
  const std::vector<SharedJob> jobs{job({5, 6, 5}), job({1, 14, 1})};
  const DynamicShare d = share_by_forecast(jobs, 15, 2);  // 14 + 5 at rest does not fit
  ASSERT_TRUE(d.possible);
  EXPECT_EQ(d.starts[2].job, 1u);
  // Its middle third is high, from tick 21 of 64 on: that begins when the other has left.
  EXPECT_EQ(d.starts[2].begin + 21, 2 * d.step_ticks[0]);
  const DynamicShare never = share_by_forecast({job({5, 6, 5}), job({1, 16, 1})}, 15, 2);
  EXPECT_FALSE(never.possible);
  EXPECT_NE(never.why_not.find("16 bytes"), std::string::npos) << never.why_not;
}

TEST(DynamicShare, UnknownDurationsAreAllOneStep) {
  const DynamicShare d = share_by_forecast({job({1, 2}, 0), job({1, 2}, 5)}, 100, 4);
  EXPECT_EQ(d.seconds_per_tick, 0);
  EXPECT_EQ(d.step_ticks[0], d.step_ticks[1]);
  const DynamicShare known = share_by_forecast({job({1, 2}, 0.5), job({1, 2}, 5)}, 100, 4);
  EXPECT_EQ(known.step_ticks[1], 10 * known.step_ticks[0]);
}

TEST(TimeSlicing, IsTheSumOfBusySharesBeyondOne) {
  EXPECT_EQ(time_slicing_slowdown({job({1}, 1, 0.7), job({1}, 1, 0.5)}), 1.2);
  EXPECT_EQ(time_slicing_slowdown({job({1}, 1, 0.3), job({1}, 1, 0.5)}), 1.0);
  EXPECT_EQ(time_slicing_slowdown({job({1}, 1, 0.3), job({1}, 1)}), std::nullopt) << "never guessed";
}

constexpr double kGiB = 1 << 30;

TEST(Mig, JobsTakeTheLargestInstancesThatGoTogether) {
  const Gpu gpu = load_machine("h100-sxm-80gb").gpu;
  const auto name = [&](const MigShare& share, std::size_t j) {
    const int p = share.places[j].profile;
    return p < 0 ? std::string("none") : gpu.mig_profiles[static_cast<std::size_t>(p)].name;
  };
  const MigShare alone = share_by_mig({job({kGiB}, 1, 0.5)}, gpu);
  EXPECT_EQ(name(alone, 0), "7g.80gb");
  EXPECT_DOUBLE_EQ(*alone.places[0].slowdown_at_most, 1);

  const MigShare two = share_by_mig({job({30 * kGiB}, 1, 0.5), job({30 * kGiB})}, gpu);
  EXPECT_EQ(two.placed, 2u);
  // 4g + 3g: the smaller share, 60 of 132 multiprocessors, is that of 3g + 3g, and the sum is larger.
  EXPECT_EQ(name(two, 0) + name(two, 1), "3g.40gb4g.40gb");
  EXPECT_DOUBLE_EQ(two.places[0].share, 60.0 / 132);
  EXPECT_DOUBLE_EQ(*two.places[0].slowdown_at_most, 1 + 0.5 * (132.0 / 60 - 1));
  EXPECT_FALSE(two.places[1].slowdown_at_most) << "its busy share is unknown";

  const MigShare three = share_by_mig({job({30 * kGiB}), job({30 * kGiB}), job({30 * kGiB})}, gpu);
  EXPECT_EQ(three.placed, 2u) << "memory slices: 4 + 4 of 8";
  const MigShare seven = share_by_mig(std::vector<SharedJob>(8, job({5 * kGiB})), gpu);
  EXPECT_EQ(seven.placed, 7u);
  const MigShare four = share_by_mig(std::vector<SharedJob>(5, job({15 * kGiB})), gpu);
  EXPECT_EQ(four.placed, 4u) << "20 GB take two memory slices each";
}

TEST(Mig, NoMoreInstancesOfAProfileThanThereCanBe) {
  Gpu gpu;
  gpu.multiprocessors = 100;
  gpu.mig_profiles = {{"1g", 10, 10, 1, 1, 2}, {"7g", 80, 98, 7, 8, 1}};
  EXPECT_EQ(share_by_mig({job({5}), job({5}), job({5})}, gpu).placed, 2u);
  gpu.mig_profiles[0].count = 7;
  EXPECT_EQ(share_by_mig({job({5}), job({5}), job({5})}, gpu).placed, 3u);
}

TEST(Mig, AGpuWithoutProfilesHasNoInstance) {
  const MigShare none = share_by_mig({job({1})}, load_machine("v100-sxm2-16gb").gpu);
  EXPECT_EQ(none.placed, 0u);
}

TEST(Mig, ProfilesAreNumbersOfTheMachine) {
  const Machine machine = load_machine("a100-sxm-40gb", {"gpu.mig_profile.1g.10gb.memory=9 GiB"});
  const auto& profiles = machine.gpu.mig_profiles;
  ASSERT_EQ(profiles.size(), 6u);
  EXPECT_EQ(profiles[0].memory, static_cast<Bytes>(4.75 * kGiB));
  EXPECT_EQ(profiles[1].name, "1g.10gb");
  EXPECT_EQ(profiles[1].memory, static_cast<Bytes>(9 * kGiB));
  EXPECT_EQ(profiles[5].multiprocessors, 98u);
  EXPECT_EQ(profiles[5].compute_slices, 7u);
  EXPECT_EQ(profiles[5].memory_slices, 8u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
