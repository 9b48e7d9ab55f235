// Times that 64 bits of picoseconds cannot hold are refused, not turned into others.
#include <gtest/gtest.h>

#include <string>

#include "sim/units.h"
#include "tests/support/program.h"

namespace memwall {
namespace {

const std::string kSample = MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt";

// Refused by a sentence, or all numbers that are printed have a sign that times have.
void expect_no_wrong_times(const std::string& arguments, const std::string& sentence = "") {
  const ScratchFolder folder;
  const CommandOutcome o = run_memwall(folder, arguments);
  EXPECT_EQ(o.out.find("-"
                       "9"),
            std::string::npos)
      << arguments << "\n"
      << o.out;
  if (sentence.empty()) {
    EXPECT_TRUE(o.code == 0 || o.code == 2 || o.code == 3) << arguments << ": " << o.code << "\n" << o.err;
    return;
  }
  EXPECT_EQ(o.code, 2) << arguments << "\n" << o.out << o.err;
  EXPECT_NE(o.err.find(sentence), std::string::npos) << arguments << "\n" << o.err;
}

TEST(LongTimes, ScaledBeyond53DaysIsRefused) {
  expect_no_wrong_times("run '" + kSample + "' --scale kernels=1e5 --steps 1000",
                        "expected less than 4.612e+06 s (53 days");
  expect_no_wrong_times("run '" + kSample + "' --scale kernels=1e6 --steps 400",
                        "expected less than 4.612e+06 s (53 days");
  expect_no_wrong_times("run '" + kSample + "' --scale kernels=1e6 --scale kernels=1e6", "expected less than");
  expect_no_wrong_times("run '" + kSample + "' --scale host=1e6 --scale host=1e6", "expected less than");
}

TEST(LongTimes, ABandwidthOfOneByteASecondIsRefusedOrCounted) {
  expect_no_wrong_times(
      "run '" + kSample + "' --policy offload:what=optimizer,to=host --set link.pcie_h2d.bandwidth=1B/s",
      "so a bandwidth is too small.");
  for (const char* setting : {"gpu.hbm.bandwidth=1B/s", "host.dram.bandwidth=1B/s", "link.pcie_h2d.bandwidth=1B/s",
                              "host.calls.launch_latency=1e6s"})
    for (const char* policy :
         {"", " --policy offload:what=optimizer,to=host", " --pager lru --set gpu.hbm.capacity=3GB"})
      expect_no_wrong_times("run '" + kSample + "' --set '" + setting + "'" + policy);
}

TEST(LongTimes, ConversionsEndAtTheLongestTime) {
  EXPECT_EQ(from_seconds(1), picoseconds(1'000'000'000'000));
  EXPECT_EQ(from_seconds(1e300), kLongestTime);
  EXPECT_EQ(from_seconds(-1e300), -kLongestTime);
  EXPECT_EQ(from_seconds(std::nan("")), kLongestTime);
  EXPECT_EQ(scaled_time(from_seconds(1e6), 1e6), kLongestTime);
  EXPECT_EQ(scaled_time(picoseconds(3), 1.5), picoseconds(5));
}

}  // namespace
}  // namespace memwall
