// Bytes a day, life of the drives and steps until their cache is full, worked out by hand.
#include "traces/run/analysis/drive_writes.h"

#include <gtest/gtest.h>

#include "sim/trace/repeat.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/write_trace.h"
#include "traces/run/analysis/summary.h"
#include "traces/run/file/run_file.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

memwall::Run run_of(const Trace& trace, const Machine& machine) {
  RunSettings settings;
  settings.allocator = "ideal";
  return simulate_and_record(trace, machine, settings);
}

// 3 GB in a step of 2 s, to a tier of 10 TB.
WriteTrace three_gigabytes() {
  WriteTrace step;
  step.write(0, 3 * kGigabyte);
  step.kernel(0, 2);
  step.wait_for_all();
  return step;
}

Machine with_drives(Machine machine, std::uint32_t drives, Bytes endurance) {
  Tier& tier = machine.tiers[static_cast<std::size_t>(machine.tier("nvme"))];
  tier.drives = drives;
  tier.endurance = endurance;
  return machine;
}

std::optional<DriveWrites> nvme_writes(const memwall::Run& run) {
  return drive_writes(run)[static_cast<std::size_t>(run.machine.tier("nvme"))];
}

TEST(DriveWrites, AreThoseOfADayAndALife) {
  const Machine machine = with_drives(machine_with_write_cache(10 * kGigabyte, 1e9), 2, 1'000'000 * kGigabyte);
  const auto writes = nvme_writes(run_of(three_gigabytes().finish(), machine));
  ASSERT_TRUE(writes);
  EXPECT_DOUBLE_EQ(writes->bytes, 3e9);
  EXPECT_DOUBLE_EQ(writes->per_day, 1.296e14);  // 43,200 steps
  EXPECT_DOUBLE_EQ(writes->drive_writes_per_day, 12.96);
  ASSERT_TRUE(writes->life_days);
  EXPECT_DOUBLE_EQ(*writes->life_days, 2e15 / 1.296e14);
  EXPECT_EQ(writes->full_after_steps, 10u);  // 3 GB come, 2 s x 1 GB/s go
}

TEST(DriveWrites, LifeIsNotKnownWithoutEndurance) {
  const auto writes = nvme_writes(run_of(three_gigabytes().finish(), machine_with_write_cache(0, 0)));
  ASSERT_TRUE(writes);
  EXPECT_DOUBLE_EQ(writes->bytes, 3e9);
  EXPECT_FALSE(writes->life_days);
  EXPECT_FALSE(writes->full_after_steps);
}

TEST(DriveWrites, AreNoneWhereNothingIsWrittenOrNobodyCanTell) {
  WriteTrace idle;
  idle.read(0, kGigabyte);
  EXPECT_FALSE(nvme_writes(run_of(idle.finish(), machine_with_write_cache(0, 0))));
  EXPECT_FALSE(nvme_writes(run_of(three_gigabytes().finish(), test_machine()))) << "no link of writes alone";
}

TEST(DriveWrites, OfDrivesThatAreEmptiedInTimeNeverFillTheirCache) {
  const auto writes = nvme_writes(run_of(three_gigabytes().finish(), machine_with_write_cache(10 * kGigabyte, 1.5e9)));
  ASSERT_TRUE(writes);
  EXPECT_FALSE(writes->full_after_steps) << "3 GB come and 2 s x 1.5 GB/s go";
}

TEST(DriveWrites, OfAStepThatFillsTheCacheAreFullWithinIt) {
  // 1 GB is full after 1 s, whatever the step's time makes of it.
  for (const double seconds : {2.0, 100.0}) {
    WriteTrace step;
    step.write(0, 3 * kGigabyte);
    step.kernel(0, seconds);
    const auto writes = nvme_writes(run_of(step.finish(), machine_with_write_cache(kGigabyte, 1e9)));
    ASSERT_TRUE(writes);
    EXPECT_EQ(writes->full_after_steps, 1u) << seconds;
    EXPECT_EQ(writes->cache_full, from_seconds(1)) << seconds;
  }
}

TEST(DriveWrites, AreMeansOverTheSteps) {
  const Trace trace = repeated(three_gigabytes().finish(), 4);
  const Machine machine = with_drives(machine_with_write_cache(100 * kGigabyte, 1e9), 2, 1'000'000 * kGigabyte);
  const auto writes = nvme_writes(run_of(trace, machine));
  ASSERT_TRUE(writes);
  EXPECT_DOUBLE_EQ(writes->bytes, 3e9);
}

TEST(DriveWrites, OfFoldedRanksAreAllOfThoseThatShareTheDrives) {
  Machine machine = machine_with_write_cache(0, 0);
  machine.links[static_cast<std::size_t>(machine.link("nvme_write"))].sharers = 4;
  WriteTrace step;
  step.write(0, kGigabyte, 0.25e9);
  const ScratchFolder folder;
  for (const auto& [ranks, gigabytes] : {std::pair{1, 1}, {2, 2}, {4, 4}, {8, 4}}) {  // eight have two sets of drives
    step.builder().trace().ranks = static_cast<std::uint32_t>(ranks);
    const memwall::Run run = run_of(step.finish(), machine);
    const auto writes = nvme_writes(run);
    ASSERT_TRUE(writes);
    EXPECT_DOUBLE_EQ(writes->bytes, gigabytes * 1e9) << ranks;
    EXPECT_DOUBLE_EQ(writes->drive_writes_per_day, writes->per_day / 1e13) << "of all of the drives, not of a part";
    write_run(run, folder / "run.h5");
    EXPECT_EQ(nvme_writes(read_run(folder / "run.h5")), writes);
  }
}

TEST(DriveWrites, OfRanksOfTwoNodesAreThoseOfTheNodeThatWritesMost) {
  Machine machine = machine_with_write_cache(0, 0);
  const auto link = static_cast<std::size_t>(machine.link("nvme_write"));
  machine.links[link].sharers = 8;
  memwall::Run run;
  run.trace.edit().rank_table.resize(3);
  for (const std::uint32_t rank : {0u, 1u, 2u}) run.trace.edit().rank_table[rank].number = 4 * rank;  // 0, 4 and 8
  run.machine = machine_of_ranks(machine, run.trace);
  run.result.tiers.resize(run.machine.tiers.size());
  run.result.links.resize(run.machine.links.size());
  EXPECT_EQ(run.machine.views[1].link[link], link) << "ranks 0 and 4 share their drives";
  run.result.links[link].bytes = kGigabyte;
  run.result.links[run.machine.views[2].link[link]].bytes = 3 * kGigabyte;
  const auto writes = nvme_writes(run);
  ASSERT_TRUE(writes);
  EXPECT_DOUBLE_EQ(writes->bytes, 3e9);
}

TEST(DriveWrites, StandInTheJson) {
  const Machine machine = with_drives(machine_with_write_cache(10 * kGigabyte, 1e9), 2, 1'000'000 * kGigabyte);
  memwall::Run run = run_of(three_gigabytes().finish(), machine);
  run.steady_step = from_seconds(3);
  const std::string json = to_json(summarize(run));
  for (const char* field : {"\"written_bytes\": 3000000000", "\"drive_writes_per_day\": 12.96",
                            "\"drive_life_days\": 15.4", "\"cache_full_after_steps\": 10", "\"steady_step_time_s\": 3"})
    EXPECT_NE(json.find(field), std::string::npos) << field;
  const std::string unknown = to_json(summarize(run_of(three_gigabytes().finish(), machine_with_write_cache(0, 0))));
  EXPECT_NE(unknown.find("\"drive_life_days\": null"), std::string::npos);
  const std::string unwritten = to_json(summarize(run_of(three_gigabytes().finish(), test_machine())));
  EXPECT_EQ(unwritten.find("written_bytes"), std::string::npos);
  EXPECT_EQ(unwritten.find("steady_step_time_s"), std::string::npos);
}

TEST(DriveWrites, ThatWearDrivesOutOrFallOffAreSaid) {
  const Machine machine = with_drives(machine_with_write_cache(10 * kGigabyte, 1e9), 2, 1'000'000 * kGigabyte);
  memwall::Run run = run_of(three_gigabytes().finish(), machine);
  run.steady_step = from_seconds(3);
  std::string all;
  for (const std::string& sentence : summarize(run).verdict.sentences) all += sentence + "\n";
  EXPECT_NE(
      all.find("The write cache of nvme's drives is full after 10 steps (20 s); then a step takes 3.000 s instead "
               "of 2.000 s (+50 %)."),
      std::string::npos)
      << all;
  memwall::Run small = run_of(three_gigabytes().finish(), machine_with_write_cache(kGigabyte, 1e9));
  small.steady_step = from_seconds(3);
  EXPECT_NE(summarize(small).verdict.sentences.at(2).find("which find in the write cache of nvme's drives what"),
            std::string::npos)
      << "full within the first: no number of steps";
  EXPECT_NE(all.find("129.6 TB written a day wear out the drives of nvme in 15 days."), std::string::npos) << all;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
