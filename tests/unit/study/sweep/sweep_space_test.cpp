// Are axes read as they are typed, and do their values stand together as asked?
#include "study/sweep/sweep_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Values = std::vector<std::string>;

TEST(Axis, IsAListOrARange) {
  EXPECT_EQ(parse_axis("policy=none|checkpoint|offload:what=activations").values,
            (Values{"none", "checkpoint", "offload:what=activations"}));
  EXPECT_EQ(parse_axis("machine=a100-sxm-80gb, h100-sxm-80gb").values, (Values{"a100-sxm-80gb", "h100-sxm-80gb"}));
  EXPECT_EQ(parse_axis("policy=plan:budget=8GiB,tiers=host+nvme").values, (Values{"plan:budget=8GiB,tiers=host+nvme"}))
      << "its commas are a policy's";
  EXPECT_EQ(parse_axis("batch=1..4").values, (Values{"1", "2", "3", "4"}));
  EXPECT_EQ(parse_axis("batch=1..64:log:7").values, (Values{"1", "2", "4", "8", "16", "32", "64"}));
  EXPECT_EQ(parse_axis("batch=1..4:log:9").values, (Values{"1", "2", "3", "4"})) << "whole numbers, each once";
  EXPECT_EQ(parse_axis("pcie=16..64GB/s:log:3").values, (Values{"16GB/s", "32GB/s", "64GB/s"}));
  EXPECT_EQ(parse_axis("x=0..1:5").values, (Values{"0", "0.25", "0.5", "0.75", "1"})) << "evenly";
  EXPECT_EQ(parse_axis("sequence=100..2000:4").values, (Values{"100", "733", "1367", "2000"})) << "whole numbers";
  EXPECT_EQ(parse_axis("scale.host=1..4:3").values, (Values{"1", "2.5", "4"})) << "a factor";
  EXPECT_EQ(parse_axis("x=0..1:step=0.5").values, (Values{"0", "0.5", "1"}));
  EXPECT_EQ(parse_axis("batch=8..32:step=8").values, (Values{"8", "16", "24", "32"}));
  EXPECT_EQ(parse_axis("repeat=1000000..1000001").values, (Values{"1000000", "1000001"}));
}

TEST(Axis, HasACondition) {
  const Axis axis = parse_axis("zero.stage=1|2|3 if policy=zero|plan");
  ASSERT_TRUE(axis.condition);
  EXPECT_EQ(axis.condition->axis, "policy");
  EXPECT_TRUE(axis.condition->holds_for("zero"));
  EXPECT_TRUE(axis.condition->holds_for("zero:ranks=8"));
  EXPECT_FALSE(axis.condition->holds_for("zeros"));
}

TEST(Axis, EndsAreAsTheyWereTyped) {
  EXPECT_EQ(parse_axis("gpu.hbm.capacity=40000000001..40000000101B:3").values,
            (Values{"40000000001B", "40000000051B", "40000000101B"}));
}

TEST(Axis, WhatIsNoneIsRefused) {
  for (const char* text :
       {"batch", "=1|2", "batch=1|1", "batch=1||2", "batch=4..1", "pcie=1..2GB/s", "pcie=0..2GB/s:log:3",
        "x=1GB..2GiB:3", "batch=1..4:log", "batch=1..4:0", "batch=1..4:1", "batch=1..1e9", "batch=1..nan",
        "batch=1..4:step=-1", "x=16..64GB/s:3:4", "x=16..64GB/s:3:step=4"})
    EXPECT_THROW(parse_axis(text), UsageError) << text;
}

TEST(SweepSpace, AGridHasAllCombinationsTheLastAxisFastest) {
  EXPECT_EQ(points_of({.axes = {parse_axis("a=1|2"), parse_axis("b=x|y")}}),
            (std::vector<PointValues>{{"1", "x"}, {"1", "y"}, {"2", "x"}, {"2", "y"}}));
}

TEST(SweepSpace, ZippedAxesGoTogether) {
  EXPECT_EQ(points_of({.axes = {parse_axis("a=1|2"), parse_axis("c=p|q"), parse_axis("b=x|y")}, .zips = {{"a", "b"}}}),
            (std::vector<PointValues>{{"1", "p", "x"}, {"1", "q", "x"}, {"2", "p", "y"}, {"2", "q", "y"}}));
  EXPECT_THROW(points_of({.axes = {parse_axis("a=1|2"), parse_axis("b=x|y|z")}, .zips = {{"a", "b"}}}), UsageError);
  EXPECT_THROW(points_of({.axes = {parse_axis("a=1|2")}, .zips = {{"a", "c"}}}), UsageError);
}

TEST(SweepSpace, AnAxisThatDoesNotApplyStandsOnce) {
  EXPECT_EQ(points_of({.axes = {parse_axis("policy=none|zero"), parse_axis("zero.stage=1|2 if policy=zero")}}),
            (std::vector<PointValues>{{"none", ""}, {"zero", "1"}, {"zero", "2"}}));
  EXPECT_THROW(points_of({.axes = {parse_axis("a=1|2 if b=3")}}), UsageError);
  EXPECT_THROW(points_of({.axes = {parse_axis("b=1|2"), parse_axis("a=1|2 if b=3")}}), UsageError) << "never holds";
  EXPECT_EQ(points_of({.axes = {parse_axis("policy=none|checkpoint + zero:stage=2"),
                                parse_axis("zero.ranks=8 if policy=zero")}}),
            (std::vector<PointValues>{{"none", ""}, {"checkpoint + zero:stage=2", "8"}}));
}

// One sample in each of equal parts of each axis: what makes it a Latin hypercube.
TEST(SweepSpace, ALatinHypercubeFillsEveryPartOfEveryAxis) {
  constexpr std::size_t kSamples = 40;
  SweepSpace space{.axes = {parse_axis("a=0..1:3"), parse_axis("b=1000..1000000:log:2"), parse_axis("c=p|q")}};
  set_sampling("latin:40:3", space);
  const std::vector<PointValues> points = points_of(space);
  ASSERT_EQ(points.size(), kSamples);
  std::set<std::size_t> linear, logarithmic;
  for (const PointValues& point : points) {
    linear.insert(static_cast<std::size_t>(std::stod(point[0]) * kSamples));
    logarithmic.insert(static_cast<std::size_t>(std::log10(std::stod(point[1]) / 1000) / 3 * kSamples));
  }
  EXPECT_EQ(linear.size(), kSamples);
  EXPECT_GE(logarithmic.size(), kSamples - 2) << "a whole number may lie just beside its part";
  EXPECT_EQ(std::ranges::count(points, "p", [](const PointValues& p) { return p[2]; }), kSamples / 2);
  EXPECT_EQ(points_of(space), points) << "the same seed";
  space.seed = 4;
  EXPECT_NE(points_of(space), points);
}

TEST(SweepSpace, RandomSamplesLieWithinTheirAxes) {
  SweepSpace space{.axes = {parse_axis("a=3..9"), parse_axis("b=16..64GB/s:log:2")}};
  set_sampling("random:500", space);
  std::set<std::string> seen;
  for (const PointValues& point : points_of(space)) {
    seen.insert(point[0]);
    EXPECT_GE(std::stod(point[1]), 16);
    EXPECT_LE(std::stod(point[1]), 64);
    EXPECT_TRUE(point[1].ends_with("GB/s"));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"3", "4", "5", "6", "7", "8", "9"}));
}

TEST(SweepSpace, TooManyPointsAndWrongSamplesAreRefused) {
  SweepSpace space{.axes = {parse_axis("a=1..100000"), parse_axis("b=1..100000")}};
  EXPECT_THROW(points_of(space), UsageError);
  for (const char* text : {"random", "latin:", "latin:0", "grid:4", "latin:4:x", "latin:4:", "random:-3"})
    EXPECT_THROW(set_sampling(text, space), UsageError) << text;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
