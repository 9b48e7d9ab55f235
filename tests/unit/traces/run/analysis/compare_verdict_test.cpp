// Does the answer of a comparison name the change of time and memory, what makes most of it, and who fits?
#include <gtest/gtest.h>

#include "traces/run/analysis/compare.h"

namespace memwall {
namespace {

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
            "The other run takes 120.0 us instead of 100.0 us (+20 %), all steps together: recompute "
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
  EXPECT_EQ(verdict_of(c).front(), "The other run takes 100.0 us, as before, all steps together.");
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

}  // namespace
}  // namespace memwall
