// Does the answer of a comparison name the change of time and memory, what makes most of it, and who fits?
#include <gtest/gtest.h>

#include "traces/run/analysis/compare.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Comparison slower_and_smaller() {
  Comparison c;
  c.same_lineage = true;
  c.base_time = microseconds(100);
  c.other_time = microseconds(120);
  c.waterfall[TimeClass::recompute] = microseconds(30);
  c.waterfall[TimeClass::host] = microseconds(-11);
  c.waterfall[TimeClass::copy] = microseconds(1);
  TierDifference hbm;
  hbm.name = "hbm";
  hbm.base_allocated = 10'000'000'000;
  hbm.other_allocated = 4'000'000'000;
  hbm.by_kind[static_cast<std::size_t>(StorageKind::activation)] = -6'000'000'000;
  c.tiers = {hbm};
  return c;
}

TEST(CompareVerdict, NamesTheTwoLargestChangesOfTime) {
  const std::vector<std::string> verdict = verdict_of(slower_and_smaller());
  ASSERT_EQ(verdict.size(), 3u);
  EXPECT_EQ(verdict[0],
            "The other run takes 120.0 us instead of 100.0 us (+20 %): recompute "
            "+30.00 us and host -11.00 us.");
  EXPECT_EQ(verdict[1], "Its peak in hbm is 4.000 GB instead of 10.00 GB (-60 %): activations -6.000 GB.");
  EXPECT_EQ(verdict[2], "Both fit.");
}

TEST(CompareVerdict, SaysWhoDoesNotFit) {
  Comparison c = slower_and_smaller();
  c.base_fits = false;
  EXPECT_EQ(verdict_of(c).back(), "The base run does not fit, the other does.");
  c.other_fits = false;
  EXPECT_EQ(verdict_of(c).back(), "Neither fits; their times take memory as unlimited.");
}

TEST(CompareVerdict, OfEqualRunsSaysSo) {
  Comparison c;
  c.same_lineage = true;
  c.base_time = c.other_time = microseconds(100);
  EXPECT_EQ(verdict_of(c).front(), "The other run takes 100.0 us, as before.");
}

TEST(CompareVerdict, OfSeveralStepsAndRanksSaysTheMeanOfAStep) {
  Comparison c = slower_and_smaller();
  c.base_steps = c.other_steps = 4;  // two steps of two ranks
  EXPECT_EQ(verdict_of(c)[0],
            "A step of the other run takes 30.00 us instead of 25.00 us (+20 %) in the mean: recompute +7.500 us and "
            "host -2.750 us.");
  c.other_steps = 8;
  c.base_classes[TimeClass::compute] = microseconds(100);
  c.other_classes[TimeClass::compute] = microseconds(120);
  EXPECT_EQ(verdict_of(c)[0],
            "A step of the other run takes 15.00 us instead of 25.00 us (-40 %) in the mean: compute -10.00 us.");
}

TEST(CompareVerdict, NamesTheFullestGpuMemoryOrTheOneThatLacksSome) {
  Comparison c = slower_and_smaller();
  c.tiers[0].name = "hbm rank 0";
  TierDifference fuller = c.tiers[0], host = c.tiers[0];
  fuller.name = "hbm rank 3";
  fuller.base_reserved = 12'000'000'000;
  host.name = "host";
  host.on_device = false;
  host.base_reserved = 500'000'000'000;
  c.tiers = {c.tiers[0], fuller, host};
  EXPECT_EQ(verdict_of(c)[1], "Its peak in hbm rank 3 is 4.000 GB instead of 10.00 GB (-60 %): activations -6.000 GB.");
  c.tiers[0].base_missing = 2'000'000'000;
  c.base_fits = false;
  EXPECT_EQ(verdict_of(c)[1].substr(0, 24), "Its peak in hbm rank 0 i");
  EXPECT_EQ(verdict_of(c)[2],
            "The base run does not fit (2.000 GB are missing in hbm rank 0), the other does.");
  c = slower_and_smaller();
  c.tiers[0].name = "gddr";
  EXPECT_EQ(verdict_of(c)[1].substr(0, 20), "Its peak in gddr is ");
}

TEST(CompareVerdict, OfDifferentStepsSaysByWhatOpsWereMatched) {
  Comparison c = slower_and_smaller();
  c.same_lineage = false;
  c.base_trace = "a";
  c.other_trace = "b";
  c.ops_equal = 3;
  c.ops_removed = 1;
  EXPECT_EQ(
      verdict_of(c).back(),
      "The runs are of different steps, a and b: ops are matched by thread, kind, name and order alone, 3 of 4 and "
      "3.");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
