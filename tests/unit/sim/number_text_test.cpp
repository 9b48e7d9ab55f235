// Do numbers read as a person, or a program, expects them?
#include "sim/number_text.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(NumberText, TheShortestTextReadsBack) {
  EXPECT_EQ(shortest_text(1), "1");
  EXPECT_EQ(shortest_text(0.1), "0.1");
  EXPECT_EQ(shortest_text(100000), "1e+05");
}

TEST(NumberText, APlainNumberHasNoExponentInTheUsualRange) {
  EXPECT_EQ(plain_number(0), "0");
  EXPECT_EQ(plain_number(100000), "100000");
  EXPECT_EQ(plain_number(-1234.5), "-1234.5");
  EXPECT_EQ(plain_number(1e-4), "0.0001");
  EXPECT_EQ(plain_number(1e-5), "1e-05");
  EXPECT_EQ(plain_number(1e15), "1000000000000000");
  EXPECT_EQ(plain_number(1e16), "1e+16");
  EXPECT_EQ(plain_number(1.7976931348623157e308), "1.7976931348623157e+308");
  for (const double number : {1.0 / 3, 2e-4 / 3, 9007199254740993.0, 5e-324}) {
    const std::string text = plain_number(number);
    double read = 0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    EXPECT_EQ(read, number) << text;
  }
}

TEST(NumberText, FixedAndGrouped) {
  EXPECT_EQ(fixed_text(12.5, 2), "12.50");
  EXPECT_EQ(fixed_text(-0.26, 1), "-0.3");
  EXPECT_EQ(percent_text(0.1234), "12.3 %");
  EXPECT_EQ(grouped_text(0), "0");
  EXPECT_EQ(grouped_text(999), "999");
  EXPECT_EQ(grouped_text(1234567), "1,234,567");
}

TEST(NumberText, TheUnitKeepsTheNumberShort) {
  const auto text = [](double seconds) { return scaled_text(seconds, kTimeUnits, 3); };
  EXPECT_EQ(text(0.0123), "12.3 ms");
  EXPECT_EQ(text(0.12), "120 ms");
  EXPECT_EQ(text(1), "1.00 s");
  EXPECT_EQ(text(-0.0005), "-500 us");
  EXPECT_EQ(text(12345), "12345 s") << "no larger unit";
  EXPECT_EQ(text(0.9996), "1.00 s") << "not 1000 ms";
  EXPECT_EQ(text(0.9994), "999 ms");
  EXPECT_EQ(text(9.996e-3), "10.0 ms") << "three digits, not four";
}

TEST(NumberText, AWholeNumberOfTheSmallestUnitHasNoDecimals) {
  EXPECT_EQ(scaled_text(5e-12, kTimeUnits, 4), "5 ps");
  EXPECT_EQ(scaled_text(5e-9, kTimeUnits, 4), "5.000 ns");
  EXPECT_EQ(scaled_text(0.5e-12, kTimeUnits, 4), "0.500 ps");
}

TEST(NumberText, ZerosAtTheEndMayGo) {
  EXPECT_EQ(scaled_text(2.5e-3, kTimeUnits, 4, TrailingZeros::dropped), "2.5 ms");
  EXPECT_EQ(scaled_text(3, kTimeUnits, 4, TrailingZeros::dropped), "3 s");
  EXPECT_EQ(scaled_text(0.99996, kTimeUnits, 4, TrailingZeros::dropped), "1 s");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
