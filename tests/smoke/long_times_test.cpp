// Times that 64 bits of picoseconds cannot hold are refused, not turned into others.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "sim/units.h"
#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSample = MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt";

// Refused by a sentence, or no time that is printed lies before the start.
void expect_no_wrong_times(const std::string& arguments, const std::string& sentence = "") {
  const ScratchFolder folder;
  const CommandOutcome o = run_memwall(folder, arguments);
  static const std::regex before_the_start(R"((^|[^0-9a-z])-[0-9.]+(e[+-]?[0-9]+)? (s|ms|us|ns)\b)");
  EXPECT_FALSE(std::regex_search(o.out, before_the_start)) << arguments << "\n" << o.out;
  if (sentence.empty()) {
    EXPECT_TRUE(o.code == 0 || o.code == 2 || o.code == 3) << arguments << ": " << o.code << "\n" << o.err;
    return;
  }
  EXPECT_EQ(o.code, 2) << arguments << "\n" << o.out << o.err;
  EXPECT_NE(o.err.find(sentence), std::string::npos) << arguments << "\n" << o.err;
}

// The number behind `key` in a run's JSON; the first behind `behind`.
double figure_of(const std::string& arguments, const std::string& key, const std::string& behind = "") {
  const ScratchFolder folder;
  const CommandOutcome o = run_memwall(folder, "run '" + kSample + "' --format json --no-provenance " + arguments);
  const std::size_t from = o.out.find(behind), at = o.out.find('"' + key + "\": ", from);
  EXPECT_TRUE(from != std::string::npos && at != std::string::npos) << arguments << "\n" << o.err;
  return at == std::string::npos ? 0 : std::stod(o.out.substr(at + key.size() + 4));
}

// Sums over all ops exceed 53 days long before the run does.
TEST(LongTimes, WaitsAddUpHoweverLongTheyAre) {
  const double once = figure_of("--steps 10", "seconds", "\"stream_order\"");
  ASSERT_GT(once, 0);
  for (const double scale : {1e3, 1e4, 1e5})
    EXPECT_NEAR(figure_of("--steps 10 --scale kernels=" + std::to_string(scale), "seconds", "\"stream_order\"") /
                    (scale * once),
                1, 0.02)
        << scale;
}

// A price is the price, or is refused; nothing in between.
TEST(LongTimes, AKernelTakesAsLongAsItsBytesSay) {
  const double fast = figure_of("--set gpu.hbm.bandwidth=1MB/s", "step_time_s");
  EXPECT_NEAR(figure_of("--set gpu.hbm.bandwidth=100kB/s", "step_time_s") / fast, 10, 0.1);
  expect_no_wrong_times("run '" + kSample + "' --set gpu.hbm.bandwidth=1B/s", "expected at most 100000 s for one op");
  expect_no_wrong_times("run '" + kSample + "' --set gpu.peak.bf16.rate=1FLOP/s",
                        "expected at most 100000 s for one op");
}

TEST(LongTimes, ScaledBeyond53DaysIsRefused) {
  expect_no_wrong_times("run '" + kSample + "' --scale kernels=1e5 --steps 10");
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

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
