// Do axes of numbers stand where they should, and say in which unit?
#include "traces/figure/number_axis.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/support/figure_checks.h"
#include "tests/support/random_chart.h"
#include "traces/figure/name_axis.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using plot::AxisLayout;
using plot::AxisTick;

std::vector<std::string> texts_of(const std::vector<AxisTick>& ticks) {
  std::vector<std::string> texts;
  for (const AxisTick& tick : ticks) texts.push_back(tick.text);
  return texts;
}

TEST(AxisNumberText, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(number_text({Measure::seconds}, 0.0123456), "12.3 ms");
  EXPECT_EQ(number_text({Measure::seconds}, 0), "0 s");
  EXPECT_EQ(number_text({Measure::seconds}, 3e-12), "3 ps");
  EXPECT_EQ(number_text({Measure::bytes, "/s"}, 16e9), "16 GB/s");
  EXPECT_EQ(number_text({Measure::binary_bytes}, 8 * 0x1p30), "8 GiB");
  EXPECT_EQ(number_text({Measure::share}, 0.2), "20 %");
  EXPECT_EQ(number_text({}, 4096), "4096");
  EXPECT_EQ(number_text({}, 0.25), "0.25");
  EXPECT_EQ(number_text({}, -12), "-12");
  EXPECT_EQ(number_text({Measure::number, "J"}, 1.25e6), "1.25 million J");
  EXPECT_EQ(number_text({Measure::number, "1/s"}, 250), "250 1/s");
}

TEST(NumberAxis, IsLinearWhereValuesAreNear) {
  const AxisLayout axis({"step time", {Measure::seconds}}, {0.1, 0.2}, 0, 100);
  EXPECT_FALSE(axis.is_logarithmic());
  EXPECT_EQ(axis.label(), "step time (ms)");
  EXPECT_NEAR(axis(0.15), (axis(0.1) + axis(0.2)) / 2, 1e-9);
}

TEST(NumberAxis, IsLogarithmicWhereTheyAreFarApart) {
  const AxisLayout axis({"step time", {Measure::seconds}}, {0.01, 0.1, 1}, 0, 100);
  EXPECT_TRUE(axis.is_logarithmic());
  EXPECT_EQ(axis.label(), "step time (s, logarithmic)");
  EXPECT_NEAR(axis(0.1), (axis(0.01) + axis(1)) / 2, 1e-9);
  EXPECT_GT(axis(0.01), 0);
  EXPECT_LT(axis(1), 100);
}

TEST(NumberAxis, OfZerosIsNotLogarithmicAndSaysSo) {
  const AxisLayout axis({"copies", {}, AxisScaling::logarithmic}, {0, 10}, 0, 100);
  EXPECT_FALSE(axis.is_logarithmic());
  EXPECT_EQ(axis.label(), "copies (not logarithmic: some are 0 or less)");
}

TEST(NumberAxis, BeginsAtZeroUnlessValuesAreNear) {
  EXPECT_EQ(AxisLayout({}, {1, 10}, 0, 100)(0), 0);
  EXPECT_LT(AxisLayout({}, {9, 10}, 0, 100)(0), 0);
  EXPECT_EQ(AxisLayout({}, {-10, -1}, 0, 100)(0), 100);
}

TEST(NumberAxis, AlmostEqualValuesDoNotLookFarApart) {
  const AxisLayout axis({}, {100, 100.001}, 0, 100);
  EXPECT_LT(axis(100.001) - axis(100), 1);
}

TEST(NumberAxis, TicksAreRound) {
  EXPECT_EQ(texts_of(AxisLayout({"", {Measure::seconds}}, {0, 0.09}, 0, 100).ticks(6)),
            (std::vector<std::string>{"0", "20", "40", "60", "80"}));
  EXPECT_EQ(texts_of(AxisLayout({"", {}, AxisScaling::logarithmic}, {1, 1000}, 0, 100).ticks(5)),
            (std::vector<std::string>{"1", "10", "100", "1000"}));
  EXPECT_EQ(texts_of(AxisLayout({"", {Measure::bytes, "/s"}}, {16e9, 64e9}, 0, 1).ticks_at({16e9, 22.6274e9, 64e9})),
            (std::vector<std::string>{"16", "22.6", "64"}));
}

TEST(NumberAxis, OfManyPowersGivesEachTickItsUnit) {
  const AxisLayout axis({"time", {Measure::seconds}}, {1e-6, 10}, 0, 100);
  const auto texts = texts_of(axis.ticks(10));
  EXPECT_EQ(texts.front(), "1 \xc2\xb5s");
  EXPECT_EQ(texts.back(), "10 s");
  EXPECT_EQ(axis.label(), "time (logarithmic)");
}

TEST(StandByFactors, TellsPowersFromSteps) {
  EXPECT_TRUE(stand_by_factors({1, 2, 4, 8, 16}));
  EXPECT_TRUE(stand_by_factors({64, 16, 32}));
  EXPECT_FALSE(stand_by_factors({1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_FALSE(stand_by_factors({0, 1, 10, 100}));
  EXPECT_FALSE(stand_by_factors({1, 1000}));
  EXPECT_FALSE(stand_by_factors({10, 11, 12}));
}

TEST(NameAxis, SlantsNamesThatDoNotFit) {
  const auto angles = [](const std::string& name) {
    Figure figure{400, 400, "", {}};
    plot::draw_name_axis(figure, {100, 20, 280, 200}, {{150, name}, {250, name}, {350, name}}, "policy", true);
    expect_within_page(figure);
    return all_of<Text>(figure).front().angle;
  };
  EXPECT_EQ(angles("none"), 0);
  EXPECT_GT(angles("offload:what=activations,to=host"), 0);
}

RC_GTEST_PROP(NumberAxis, KeepsOrderAndStaysInside, (unsigned seed)) {
  RandomChart random(seed);
  std::vector<double> values;
  for (std::size_t n = random.below(12); n > 0; --n) values.push_back(random.number());
  const AxisLayout axis(random.axis(), values, 10, 210);
  std::ranges::sort(values);
  double before = 10;
  for (const double value : values) {
    const double at = axis(value);
    RC_ASSERT(at >= before - 1e-6 && at <= 210 + 1e-6);
    before = at;
  }
  for (const int most : {2, 5, 9}) {
    const auto ticks = axis.ticks(most);
    RC_ASSERT(ticks.size() <= static_cast<std::size_t>(most));
    for (const AxisTick& tick : ticks) RC_ASSERT(tick.at >= 10 - 1e-6 && tick.at <= 210 + 1e-6);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
