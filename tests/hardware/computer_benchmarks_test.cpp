// What is measured of any computer: do the benchmarks do what they say, on sizes that a test can wait for?
#include <cmath>
#include <set>

#include "sim/error.h"
#include "tests/support/scratch_folder.h"
#include "validate/bench/adam.h"
#include "validate/bench/benchmark.h"
#include "validate/bench/computer_environment.h"
#include "validate/bench/filled_file.h"
#include "validate/bench/results_table.h"
#include "validate/bench/thread_team.h"
#include "validate/replay/pattern.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class ComputerBenchmarks : public testing::Test {
 protected:
  ComputerBenchmarks() {
    settings_.scratch = scratch_.path();
    settings_.largest_file = 1 << 20;
    settings_.largest_buffer = 1 << 20;
    settings_.seconds_per_case = 0;
    settings_.fewest_samples = 3;
  }
  MeasurementSet run(const std::string& name) {
    return run_benchmarks({BenchmarkPlace::computer}, {name}, settings_,
                          std::chrono::steady_clock::now() + std::chrono::minutes(10), {});
  }
  BenchmarkRun alone() {
    return {"test", settings_, [](const Measurement&) {}, std::chrono::steady_clock::time_point::max()};
  }
  const ScratchFolder scratch_;
  BenchmarkSettings settings_;
};

void expect_measured(const MeasurementSet& set, const std::string& name) {
  EXPECT_FALSE(set.of(name).empty()) << name;
  for (const Measurement& m : set.measurements) {
    if (m.benchmark != name) continue;  // a longer name
    EXPECT_EQ(m.status, MeasurementStatus::measured) << name << ": " << m.note;
    EXPECT_GT(m.median, 0) << name;
    EXPECT_GT(m.bytes, 0) << name;
    EXPECT_GE(m.samples, 3u) << name;
  }
}

TEST_F(ComputerBenchmarks, LeaveTheRowsThatCalibrationLooksFor) {
  const std::map<std::string, std::set<std::string>> parameters{{"memcpy_host_host", {"bytes", "threads"}},
                                                                {"adam_host", {"bytes", "threads"}},
                                                                {"storage_read", {"bytes"}},
                                                                {"storage_write", {"bytes"}},
                                                                {"file_read_direct", {"block", "depth", "method"}},
                                                                {"file_write_direct", {"block", "depth", "method"}}};
  for (const auto& [name, keys] : parameters) {
    const MeasurementSet set = run(name);
    expect_measured(set, name);
    for (const Measurement& m : set.of(name)) {
      std::set<std::string> found;
      for (const auto& [key, value] : m.parameters) found.insert(key);
      EXPECT_EQ(found, keys) << name;
      if (keys.contains("bytes")) {
        EXPECT_EQ(m.number("bytes"), m.bytes) << name;
      }
    }
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch_.path())) << "files are removed";
}

TEST_F(ComputerBenchmarks, StorageIsMeasuredInPowersOfFourUpToTheLargestFile) {
  std::vector<double> sizes;
  for (const Measurement& m : run("storage_write").measurements) sizes.push_back(m.bytes);
  EXPECT_EQ(sizes, (std::vector<double>{65536, 262144, 1048576}));
}

TEST_F(ComputerBenchmarks, WhereFilesMayNotBeLargeEnoughTheRowSaysSo) {
  settings_.largest_file = 1000;
  const MeasurementSet set = run("storage_read");
  ASSERT_EQ(set.measurements.size(), 1u);
  EXPECT_EQ(set.measurements[0].status, MeasurementStatus::not_applicable);
  EXPECT_EQ(set.measurements[0].note, "files may have 1000 bytes; expected at least 64 KiB");
}

TEST_F(ComputerBenchmarks, WhereNoFileCanBeMadeTheRowSaysSo) {
  settings_.scratch = scratch_ / "absent";
  const MeasurementSet set = run("storage_read");
  ASSERT_EQ(set.measurements.size(), 1u);
  EXPECT_EQ(set.measurements[0].status, MeasurementStatus::not_applicable);
  EXPECT_NE(set.measurements[0].note.find("the file cannot be written"), std::string::npos);
}

TEST_F(ComputerBenchmarks, WhatIsReadIsComparedByteForByte) {
  BenchmarkRun run = alone();
  FilledFile filled(run, "filled", 1 << 20);
  ASSERT_EQ(filled.bytes(), std::size_t{1} << 20);
  Measurement whole = run.row({});
  filled.measure_reads(run, filled.file(), 1 << 20, whole);
  EXPECT_EQ(whole.status, MeasurementStatus::measured) << whole.note;
  // One sector of another file's contents, where a bit has changed.
  PageBuffer sector(4096);
  filled.file().read(sector.as(), 4096, 81920);
  sector.as<std::uint64_t>()[100] ^= 1;
  filled.file().write(sector.as(), 4096, 81920);
  Measurement damaged = run.row({});
  filled.measure_reads(run, filled.file(), 1 << 20, damaged);
  EXPECT_EQ(damaged.status, MeasurementStatus::failed);
  EXPECT_EQ(damaged.note, "the region at byte 0 does not hold what was written");
}

TEST_F(ComputerBenchmarks, WhatIsWrittenIsLookedForInTheFile) {
  BenchmarkRun run = alone();
  FilledFile filled(run, "filled", 1 << 20);
  Measurement good = run.row({}), lost = run.row({});
  filled.measure_writes(run, filled.file(), 1 << 18, good);
  EXPECT_EQ(good.status, MeasurementStatus::measured) << good.note;
  DirectFile elsewhere(scratch_ / "elsewhere", 1 << 20, {});
  filled.measure_writes(run, elsewhere, 1 << 18, lost);
  EXPECT_EQ(lost.status, MeasurementStatus::failed);
}

TEST(Adam, TheVectorisedStepIsTheReference) {
  constexpr std::size_t kCount = 1003;
  std::vector<float> p(kCount), m(kCount), v(kCount), g(kCount);
  std::vector<AdamElement> reference(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    p[i] = static_cast<float>(pattern_word(1, i) >> 40) * 0x1p-24f - 0.5f;
    g[i] = (static_cast<float>(pattern_word(2, i) >> 40) * 0x1p-24f - 0.5f) * (i % 7 == 0 ? 1e-4f : 3.0f);
    reference[i] = {p[i], 0, 0, g[i]};
  }
  const AdamSettings settings;
  for (std::uint64_t step = 1; step <= 20; ++step) {
    adam_step({p.data(), m.data(), v.data(), g.data()}, 0, 500, settings, step);
    adam_step({p.data(), m.data(), v.data(), g.data()}, 500, kCount, settings, step);
    for (AdamElement& element : reference) adam_step_reference(element, settings, step);
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_NEAR(p[i], reference[i].parameter, 4e-6) << i;
    EXPECT_NEAR(m[i], reference[i].first_moment, 1e-5 * std::abs(reference[i].first_moment) + 1e-9) << i;
    EXPECT_NEAR(v[i], reference[i].second_moment, 1e-5 * reference[i].second_moment + 1e-12) << i;
  }
}

// Twenty steps of a constant gradient move a parameter by the rate each: by hand, without the reference.
TEST(Adam, AConstantGradientMovesByTheRatePerStep) {
  float p = 1, m = 0, v = 0, g = 0.25f;
  for (std::uint64_t step = 1; step <= 20; ++step) adam_step({&p, &m, &v, &g}, 0, 1, {}, step);
  EXPECT_NEAR(p, 1 - 20 * 1e-3, 1e-6);
}

TEST(ThreadTeam, SharesCoverEverythingOnce) {
  for (const std::size_t count : {0, 1, 63, 64, 1000, 4096})
    for (const unsigned members : {1u, 2u, 3u, 7u}) {
      std::size_t end = 0;
      for (unsigned member = 0; member < members; ++member) {
        const TeamShare share = share_of(count, member, members, 16);
        EXPECT_EQ(share.begin, end);
        EXPECT_EQ(share.begin % 16, 0u);
        EXPECT_GE(share.end, share.begin);
        end = share.end;
      }
      EXPECT_EQ(end, count);
    }
}

TEST(ThreadTeam, EveryMemberWorksOnceARound) {
  ThreadTeam team(3);
  std::vector<int> calls(3);
  for (int round = 0; round < 10; ++round) EXPECT_GE(team.run([&](unsigned member) { ++calls[member]; }), 0);
  EXPECT_EQ(calls, (std::vector<int>{10, 10, 10}));
}

TEST(ComputerEnvironment, SaysWhatItIsAndNotWhoseItIs) {
  const ScratchFolder scratch;
  const Environment environment = computer_environment(scratch.path());
  for (const char* key : {"date", "cpu.name", "cpu.count", "memory_bytes", "kernel", "scratch.file_system", "compiler"})
    EXPECT_NE(value_of(environment, key), "") << key;
  const std::string date = value_of(environment, "date");
  EXPECT_TRUE(date.size() == 20 && date[10] == 'T' && date.back() == 'Z') << date;
  for (const auto& [key, value] : environment)
    EXPECT_EQ(value.find(scratch.path().filename().string()), std::string::npos) << key;
}

TEST(ComputerEnvironment, WhatIsKnownIsNotReplaced) {
  Environment environment{{"a", "1"}};
  append_missing(environment, {{"a", "2"}, {"b", "3"}});
  EXPECT_EQ(environment, (Environment{{"a", "1"}, {"b", "3"}}));
}

TEST(ResultsTable, ScalesFiguresToAUnitThatFits) {
  EXPECT_EQ(figure_text(1.5e-9, "s"), "1.50 ns");
  EXPECT_EQ(figure_text(0.000123, "s"), "123 us");
  EXPECT_EQ(figure_text(12.34, "s"), "12.3 s");
  EXPECT_EQ(figure_text(0, "s"), "0.00 ns");
  EXPECT_EQ(figure_text(524288000, "B"), "524 MB");
  EXPECT_EQ(figure_text(0.5, "share"), "50.0 %");
  EXPECT_EQ(figure_text(1024, "count"), "1024");
}

TEST(ResultsTable, OneLinePerRow) {
  MeasurementSet set;
  Measurement m;
  m.benchmark = "storage_read";
  m.parameters = {{"bytes", "1048576"}};
  m.median = 1e-3;
  m.low = 0.9e-3;
  m.high = 1.1e-3;
  m.bytes = 1048576;
  m.note = "threads";
  set.measurements.push_back(m);
  m.status = MeasurementStatus::failed;
  m.note = "broken\nbadly";
  set.measurements.push_back(m);
  EXPECT_EQ(results_table(set),
            "benchmark     parameters   median       rate  spread  note\n"
            "storage_read  bytes=1MiB  1.00 ms  1.05 GB/s  20.0 %  threads\n"
            "storage_read  bytes=1MiB   failed                     broken badly\n");
  EXPECT_EQ(results_table({}), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
