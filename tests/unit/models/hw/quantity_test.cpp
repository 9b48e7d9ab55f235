// Does a value with its unit become the right number, and is everything else refused with a reason?
#include "models/hw/quantity.h"

#include <gtest/gtest.h>

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string refusal(std::string_view text, Dimension dimension) {
  try {
    parse_quantity(text, dimension);
  } catch (const QuantityError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Quantity, UnitsScaleByTenOrByTwo) {
  EXPECT_DOUBLE_EQ(parse_quantity("3.35 TB/s", Dimension::bandwidth), 3.35e12);
  EXPECT_DOUBLE_EQ(parse_quantity("4TB/s", Dimension::bandwidth), 4e12);
  EXPECT_DOUBLE_EQ(parse_quantity("1 GB", Dimension::size), 1e9);
  EXPECT_DOUBLE_EQ(parse_quantity("1 GiB", Dimension::size), 1073741824.0);
  EXPECT_DOUBLE_EQ(parse_quantity("84929347584 B", Dimension::size), 84929347584.0);
  EXPECT_DOUBLE_EQ(parse_quantity("989.4 TFLOP/s", Dimension::flop_rate), 989.4e12);
  EXPECT_DOUBLE_EQ(parse_quantity("8.4 us", Dimension::time), 8.4e-6);
  EXPECT_DOUBLE_EQ(parse_quantity("1.98 GHz", Dimension::frequency), 1.98e9);
  EXPECT_DOUBLE_EQ(parse_quantity("700 W", Dimension::power), 700);
  EXPECT_DOUBLE_EQ(parse_quantity("2.49 $/h", Dimension::price_rate), 2.49);
  EXPECT_DOUBLE_EQ(parse_quantity("62.5 pJ/B", Dimension::energy_per_byte), 62.5);
}

TEST(Quantity, SharesAndCountsHaveNoUnit) {
  EXPECT_DOUBLE_EQ(parse_quantity("0.85", Dimension::share), 0.85);
  EXPECT_DOUBLE_EQ(parse_quantity("85 %", Dimension::share), 0.85);
  EXPECT_DOUBLE_EQ(parse_quantity("132", Dimension::count), 132);
  EXPECT_EQ(refusal("132 SMs", Dimension::count),
            "\"132 SMs\" has the unit \"SMs\"; expected a count without unit such as \"132\"");
}

TEST(Quantity, TimesMayBeNegativeOthersNot) {
  EXPECT_DOUBLE_EQ(parse_quantity("-2 us", Dimension::time), -2e-6);
  EXPECT_NE(refusal("-1 GB", Dimension::size).find("out of range"), std::string::npos);
  EXPECT_NE(refusal("0 GB/s", Dimension::bandwidth).find("out of range"), std::string::npos);
  EXPECT_NE(refusal("1.2", Dimension::share).find("out of range"), std::string::npos);
  EXPECT_NE(refusal("1.5", Dimension::count).find("out of range"), std::string::npos);
}

TEST(Quantity, AMissingUnitSaysWhatIsExpected) {
  EXPECT_EQ(refusal("3.35", Dimension::bandwidth), "\"3.35\" has no unit; expected a bandwidth such as \"3.35 TB/s\"");
}

TEST(Quantity, AMisspelledUnitNamesTheNearest) {
  EXPECT_NE(refusal("3.35 TBs", Dimension::bandwidth).find("(nearest: \"TB/s\")"), std::string::npos);
  EXPECT_NE(refusal("80 gib", Dimension::size).find("unknown unit \"gib\""), std::string::npos);
}

TEST(Quantity, AnotherDimensionIsNamed) {
  EXPECT_EQ(refusal("80 GB", Dimension::bandwidth), "\"80 GB\" is a size; expected a bandwidth such as \"3.35 TB/s\"");
}

TEST(Quantity, WhatIsNoNumberIsRefused) {
  for (const char* text : {"", "fast", "nan GB", "inf GB", "1e999 GB", "--3 GB"})
    EXPECT_NE(refusal(text, Dimension::size).find("does not begin with a number"), std::string::npos) << text;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
