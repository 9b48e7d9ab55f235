// Do quantities read as people write them?
#include "sim/human_text.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(HumanText, TakesTheUnitThatFits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(823'400'000), "823.4 MB");
  EXPECT_EQ(human_bytes(16'911'000'000), "16.91 GB");
  EXPECT_EQ(human_bytes(-2'000'000'000), "-2.000 GB");
  EXPECT_EQ(human_time(microseconds(42'654)), "42.65 ms");
  EXPECT_EQ(human_time(Duration{}), "0 s");
  EXPECT_EQ(human_rate(3.35e12), "3.350 TB/s");
}

TEST(HumanText, OneIsNotSeveral) {
  EXPECT_EQ(counted_text(1, "op"), "1 op");
  EXPECT_EQ(counted_text(0, "op"), "0 ops");
  EXPECT_EQ(counted_text(1234, "op"), "1,234 ops");
  EXPECT_EQ(counted_text(2, "launch", "launches"), "2 launches");
  EXPECT_STREQ(by_number(1, "is", "are"), "is");
  EXPECT_STREQ(by_number(2, "is", "are"), "are");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
