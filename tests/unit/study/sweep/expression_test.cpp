// Do expressions have the values of a reference, check their units, and refuse what is none with place and expectation?
#include "study/sweep/expression.h"

#include <gtest/gtest.h>

#include <map>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::map<std::string, double> kFields = {{"fits", 1},          {"step_time_s", 0.5},
                                               {"total_s", 2},       {"tiers.hbm.peak_reserved_bytes", 40e9},
                                               {"price_dollars", 3}, {"order", 7}};

std::optional<double> lookup(const std::string& name) {
  const auto found = kFields.find(name);
  return found == kFields.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> value(const std::string& text) { return Expression(text).value(lookup); }

TEST(Expression, HasTheUsualOrderOfOperators) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("8 - 4 - 2"), 2) << "from the left";
  EXPECT_EQ(value("8 / 4 / 2"), 1);
  EXPECT_EQ(value("-2 * -3"), 6);
  EXPECT_EQ(value("1 < 2 and 2 < 1 or 3 == 3"), 1);
  EXPECT_EQ(value("not 1 < 2 or 1 < 2"), 1) << "not binds closer than or";
  EXPECT_EQ(value("not (1 < 2 or 1 < 2)"), 0);
  EXPECT_EQ(value("order + 1"), 8) << "a name that begins like an operator";
}

TEST(Expression, ComparesAllWays) {
  for (const auto& [text, truth] : std::map<std::string, double>{{"1 < 1", 0},
                                                                 {"1 <= 1", 1},
                                                                 {"1 > 1", 0},
                                                                 {"1 >= 1", 1},
                                                                 {"1 == 1", 1},
                                                                 {"1 != 1", 0},
                                                                 {"2 < 1", 0},
                                                                 {"2 > 1", 1},
                                                                 {"2 = 2", 1}})
    EXPECT_EQ(value(text), truth) << text;
}

TEST(Expression, NumbersHaveUnits) {
  EXPECT_EQ(value("1.5ms"), 0.0015);
  EXPECT_EQ(value("2GiB"), 2.0 * (1 << 30));
  EXPECT_EQ(value("16GB/s"), 16e9);
  EXPECT_EQ(value("20%"), 0.2);
  EXPECT_EQ(value("2 GiB"), 2.0 * (1 << 30)) << "with a blank, too";
  EXPECT_EQ(value("1 < 2 and 2 < 3"), 1) << "a word is no unit";
  EXPECT_EQ(to_string(Expression("2kJ").unit()), "J");
  EXPECT_EQ(value("2kJ"), 2000);
  EXPECT_EQ(value("price_dollars < 3.5$"), 1);
  EXPECT_EQ(to_string(Expression("5/s").unit()), "1/s");
  EXPECT_EQ(value("6/order"), 6.0 / 7);
  EXPECT_EQ(value("step_time_s < 600ms and tiers.hbm.peak_reserved_bytes < 40GiB"), 1);
  EXPECT_EQ(value("step_time_s < 0.6"), 1) << "the name says its unit";
  EXPECT_EQ(value("-step_time_s > -0.6"), 1);
  EXPECT_EQ(value("step_time_s + total_s < 2.6"), 1);
  EXPECT_EQ(value("40GB/tiers.hbm.peak_reserved_bytes"), 1) << "a division, not bytes per second";
}

TEST(Expression, UnitsAreChecked) {
  for (const char* text : {"step_time_s < 40GiB", "step_time_s + tiers.hbm.peak_reserved_bytes", "price_dollars > 1s",
                           "step_time_s * 2s < 1s"})
    EXPECT_THROW(Expression{text}, UsageError) << text;
  EXPECT_EQ(to_string(Expression("tiers.hbm.peak_reserved_bytes / step_time_s").unit()), "B/s");
  EXPECT_EQ(to_string(Expression("price_dollars / total_s * step_time_s").unit()), "$");
  EXPECT_EQ(to_string(Expression("step_time_s / total_s").unit()), "1");
  EXPECT_EQ(to_string(Expression("step_time_s * step_time_s").unit()), "s^2");
}

// "step_time < 1.2": in seconds, or in milliseconds?
TEST(Expression, ANumberWithoutAUnitNeedsANameThatSaysOne) {
  const auto unit = [](const std::string& name) { return unit_of_field(name == "step_time" ? "step_time_s" : name); };
  EXPECT_THROW(Expression("step_time < 1.2", unit), UsageError);
  EXPECT_THROW(Expression("1.2 > step_time", unit), UsageError);
  EXPECT_THROW(Expression("step_time + step_time_s < 2", unit), UsageError);
  for (const char* text : {"step_time < 1.2s", "step_time > 0", "step_time_s < 1.2", "step_time / step_time_s < 2"})
    EXPECT_NO_THROW(Expression(text, unit)) << text;
}

TEST(Expression, KnowsConditionsFromNumbers) {
  for (const char* text : {"fits > 0", "not fits", "fits and fits", "fits or 1 < 2", "(1 == 2)"})
    EXPECT_TRUE(Expression(text).is_condition()) << text;
  for (const char* text : {"fits", "1 + 2", "-step_time_s", "(total_s)"})
    EXPECT_FALSE(Expression(text).is_condition()) << text;
}

TEST(Expression, WhatIsNotKnownMakesUnknown) {
  EXPECT_EQ(value("mfu"), std::nullopt);
  EXPECT_EQ(value("mfu + 1"), std::nullopt);
  EXPECT_EQ(value("mfu > 1 and 1 < 2"), std::nullopt);
  EXPECT_EQ(value("mfu > 1 and 2 < 1"), 0) << "settled whatever it is";
  EXPECT_EQ(value("mfu > 1 or 1 < 2"), 1);
  EXPECT_EQ(value("not mfu > 1"), std::nullopt);
  EXPECT_EQ(value("1 / 0"), std::nullopt);
  EXPECT_FALSE(Expression("mfu > 1").holds(lookup));
}

TEST(Expression, NamesItsFields) {
  EXPECT_EQ(Expression("fits and step_time_s < 1 or fits").names(), (std::vector<std::string>{"fits", "step_time_s"}));
}

TEST(Expression, WhatIsNoneIsRefusedWithItsPlace) {
  const std::map<std::string, std::string> cases = {{"", "found \"the end\""},
                                                    {"1 +", "found \"the end\""},
                                                    {"(1", "expected \")\""},
                                                    {"1 2", "character 3: found \"2\""},
                                                    {"step_time_s < 1parsec", "expected a unit"},
                                                    {"$", "character 1"},
                                                    {std::string(1'000, '('), "at most 100"},
                                                    {std::string(1'000, '-') + "1", "at most 100"}};
  for (const auto& [text, sentence] : cases) {
    try {
      Expression expression(text);
      FAIL() << text;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(sentence), std::string::npos) << error.what();
    }
  }
}

TEST(UnitOfField, IsItsSuffix) {
  EXPECT_EQ(to_string(unit_of_field("step_time_s")), "s");
  EXPECT_EQ(to_string(unit_of_field("links.pcie_h2d.bandwidth_bytes_per_s")), "B/s");
  EXPECT_EQ(to_string(unit_of_field("samples_per_s")), "1/s");
  EXPECT_EQ(to_string(unit_of_field("links.hbm.bytes")), "B");
  EXPECT_EQ(to_string(unit_of_field("mfu")), "1");
  EXPECT_EQ(to_string(unit_of_field("energy_joules")), "J");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
