// Do the benchmarks of the host back end leave the rows that docs/validation.md promises, with figures that make
// sense? Nothing is said here about how fast this computer is.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "sim/units.h"
#include "validate/bench/benchmark.h"
#include "validate/bench/host_device.h"
#include "validate/replay/host_backend.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Benchmark -> its parameters, as in docs/validation.md for the place `host`.
const std::map<std::string, std::set<std::string>> kRows = {
    {"copy_host_hbm_pinned", {"bytes"}},
    {"copy_hbm_host_pinned", {"bytes"}},
    {"copy_host_hbm_pageable", {"bytes"}},
    {"copy_hbm_host_pageable", {"bytes"}},
    {"copy_both_pinned", {"bytes", "direction"}},
    {"copy_host_hbm_streams", {"bytes", "streams"}},
    {"copy_hbm_host_streams", {"bytes", "streams"}},
    {"copy_hbm_hbm", {"bytes"}},
    {"copy_host_hbm_processes", {"bytes", "measured", "processes"}},
    {"copy_hbm_host_processes", {"bytes", "measured", "processes"}},
    {"hbm_read", {"working_set"}},
    {"hbm_write", {"working_set"}},
    {"hbm_triad", {"working_set"}},
    {"latency_hbm_chase", {"working_set"}},
    {"gemm_fp32", {"m", "n", "k"}},
    {"kernel_normalization", {"bytes"}},
    {"kernel_softmax", {"bytes"}},
    {"kernel_elementwise", {"bytes"}},
    {"kernel_reduction", {"bytes"}},
    {"kernel_optimizer", {"bytes"}},
    {"call_launch", {}},
    {"call_copy", {}},
    {"call_event", {}},
    {"call_synchronize_return", {}},
    {"launch_latency", {}},
    {"stream_gap", {}},
    {"call_allocator", {}},
    {"device_malloc", {"bytes"}},
    {"device_free", {"bytes"}},
    {"interference_copy_hbm_kernel", {"bytes", "measured", "beside"}},
    {"interference_copy_sm_kernel", {"bytes", "measured", "beside"}},
    {"storage_hbm_staged", {"bytes"}},
    {"storage_read", {"bytes"}},
    {"storage_write", {"bytes"}},
    {"hbm_storage_staged", {"bytes"}},
};

// Tests run beside each other, each in a process of its own.
std::filesystem::path scratch_folder() {
  return std::filesystem::path(::testing::TempDir()) / ("memwall_host_benchmarks_" + std::to_string(getpid()));
}

MeasurementSet run_tiny(const std::vector<std::string>& filters) {
  BenchmarkSettings settings;
  settings.scratch = scratch_folder();
  std::filesystem::create_directories(settings.scratch);
  settings.largest_file = settings.largest_buffer = static_cast<std::size_t>(KiB(256));
  settings.seconds_per_case = 0;
  settings.fewest_samples = 2;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  MeasurementSet set = run_benchmarks({BenchmarkPlace::host}, filters, settings, deadline, nullptr);
  EXPECT_TRUE(std::filesystem::is_empty(settings.scratch)) << "files are removed";
  std::filesystem::remove_all(settings.scratch);
  return set;
}

TEST(HostBenchmarks, LeaveTheRowsThatArePromised) {
  const MeasurementSet set = run_tiny({});
  std::map<std::string, int> rows;
  for (const Measurement& m : set.measurements) {
    SCOPED_TRACE(m.benchmark);
    ++rows[m.benchmark];
    ASSERT_TRUE(kRows.count(m.benchmark)) << "not in the table";
    // A busy computer, or a program under a sanitizer: the row says so.
    if (m.note.find("could not be kept up") != std::string::npos ||
        m.note.find("memcpy leaves room") != std::string::npos)
      continue;
    EXPECT_EQ(m.status, MeasurementStatus::measured) << m.note;
    std::set<std::string> names;
    for (const auto& [name, value] : m.parameters) names.insert(name);
    EXPECT_EQ(names, kRows.at(m.benchmark));
    EXPECT_EQ(m.unit, "s");
    EXPECT_GE(m.samples, 2u);
    EXPECT_TRUE(std::isfinite(m.median) && m.low <= m.median && m.median <= m.high);
    // A stream may be awake and begin before the call that gave it work has returned.
    if (m.benchmark != "launch_latency") {
      EXPECT_GE(m.low, 0);
      EXPECT_GT(m.high, 0);
    }
    for (const char* name : {"bytes", "working_set"})
      if (m.parameters.count(name) && m.bytes > 0) {
        const bool of_all = m.parameters.contains("processes") && m.parameters.at("measured") == "all";
        EXPECT_EQ(m.bytes, m.number(name) * (of_all ? m.number("processes") : 1));
      }
  }
  for (const auto& [name, parameters] : kRows) EXPECT_GT(rows[name], 0) << name;
  EXPECT_EQ(rows["copy_host_hbm_pinned"], 4) << "4, 16, 64 and 256 KiB";
  EXPECT_EQ(rows["copy_both_pinned"], 8);
  EXPECT_EQ(rows["interference_copy_hbm_kernel"], 4);
}

TEST(HostBenchmarks, CopiesAreNotFasterThanTheStatedRate) {
  const HostBackendSettings settings;
  for (const char* name : {"copy_host_hbm_pinned", "copy_hbm_host_streams", "copy_both_pinned"}) {
    for (const Measurement& m : run_tiny({name}).measurements)
      EXPECT_GE(m.low + 1e-9, m.bytes / settings.host_to_device) << m.benchmark << " of " << m.bytes;
  }
  for (const Measurement& m : run_tiny({"copy_hbm_host_pageable"}).measurements)
    EXPECT_GE(m.low + 1e-9, m.bytes / (settings.device_to_host * settings.pageable_share)) << m.bytes;
}

TEST(HostBenchmarks, ComputeStatesItsFlops) {
  for (const Measurement& m : run_tiny({"gemm_fp32"}).measurements) {
    EXPECT_EQ(m.flops, 2 * m.number("m") * m.number("n") * m.number("k"));
    EXPECT_EQ(m.bytes, 0);
  }
}

TEST(HostBenchmarks, SizesGoUpToTheLargest) {
  EXPECT_EQ(sizes_up_to(KiB(64)), (std::vector<Bytes>{KiB(4), KiB(16), KiB(64)}));
  EXPECT_EQ(sizes_up_to(KiB(63)), (std::vector<Bytes>{KiB(4), KiB(16)}));
  EXPECT_EQ(sizes_up_to(1000), (std::vector<Bytes>{1000}));
}

TEST(HostBenchmarks, WrongDataMakeARowFailed) {
  std::vector<std::uint64_t> words(100, 0);
  const Buffer buffer{PlaceClass::pinned, words.data(), 0, 800};
  Measurement m;
  verify_pattern(buffer, 800, 3, m);
  EXPECT_EQ(m.status, MeasurementStatus::failed);
  EXPECT_NE(m.note.find("100 words"), std::string::npos) << m.note;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
