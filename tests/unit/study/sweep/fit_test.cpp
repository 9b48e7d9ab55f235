// Does a search find what a look at every value finds, and say where the condition is not monotone?
#include "study/sweep/fit.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "tests/support/gpt_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::optional<std::size_t> by_scan(const std::vector<bool>& holds) {
  for (std::size_t i = holds.size(); i > 0; --i)
    if (holds[i - 1]) return i - 1;
  return std::nullopt;
}

FitEdge search(const std::vector<bool>& holds) {
  std::vector<int> asked(holds.size(), 0);
  const FitEdge edge = last_that_holds(holds.size(), [&](const std::vector<std::size_t>& values) {
    std::vector<bool> answers;
    for (const std::size_t i : values) {
      EXPECT_EQ(++asked[i], 1) << "each value once";
      answers.push_back(holds[i]);
    }
    return answers;
  });
  EXPECT_TRUE(std::ranges::is_sorted(edge.probed));
  return edge;
}

TEST(Fit, FindsTheEdgeOfAMonotoneConditionInFewProbes) {
  for (const std::size_t count : {1u, 2u, 3u, 64u, 65u, 1'000u, 100'000u})
    for (const std::size_t edge : {std::size_t{0}, std::size_t{1}, count / 3, count - 1, count}) {
      std::vector<bool> holds(count, false);
      std::fill_n(holds.begin(), std::min(edge, count), true);
      const FitEdge found = search(holds);
      EXPECT_EQ(found.last, by_scan(holds)) << count << " " << edge;
      EXPECT_TRUE(found.anomalies.empty());
      EXPECT_LE(found.probed.size(), std::max<std::size_t>(kMostScanned, 2 + 17 + 2 * kChecks));
    }
}

TEST(Fit, OfFewValuesAnyConditionIsScanned) {
  EXPECT_TRUE(rc::check([] {
    const auto holds = *rc::gen::suchThat(rc::gen::arbitrary<std::vector<bool>>(), [](const std::vector<bool>& v) {
      return !v.empty() && v.size() <= kMostScanned;
    });
    const FitEdge found = search(holds);
    RC_ASSERT(found.last == by_scan(holds));
    for (const std::size_t i : found.anomalies) RC_ASSERT(!holds[i] && i < *found.last);
  }));
}

// Of many values: an island behind the edge that is wider than the distance of the checks, and a hole before it. An
// island of another width between the checks may be missed, which fit.h says.
TEST(Fit, OfManyValuesAnIslandAsWideAsTheChecksAreApartIsFound) {
  EXPECT_TRUE(rc::check([] {
    const auto count = *rc::gen::inRange<std::size_t>(200, 5'000);
    const auto edge = *rc::gen::inRange<std::size_t>(1, count / 2);
    const std::size_t apart = (count - edge) / (kChecks + 1) + 2;
    const auto begin = *rc::gen::inRange<std::size_t>(edge + 1, count - apart - 1);
    std::vector<bool> holds(count, false);
    std::fill_n(holds.begin(), edge, true);
    std::fill_n(holds.begin() + static_cast<std::ptrdiff_t>(begin), apart, true);
    const FitEdge found = search(holds);
    RC_ASSERT(found.last == by_scan(holds));
    if (begin - edge > (begin + apart) / (kChecks + 1) + 1) RC_ASSERT(!found.anomalies.empty());  // as wide, too
  }));
}

TEST(Fit, TheLargestIsByNumberAndWhatHasNoOrderIsRefused) {
  Study study;
  GptShape shape;
  shape.layers = 2;
  study.add_step("gpt", gpt_step(shape));
  FitRequest request{.base = {.step = {"gpt"}, .machine = "a100-sxm-80gb"},
                     .axis = parse_axis("scale.kernels=16|4|8"),
                     .conditions = {"fits"}};
  const FitResult result = fit(study, request, nullptr);
  EXPECT_EQ(result.values[*result.edge.last], "16");
  for (const char* axis : {"policy=none|checkpoint", "budget=8GiB|3", "scale.kernels=1|2 if policy=x"}) {
    request.axis = parse_axis(axis);
    EXPECT_THROW(fit(study, request, nullptr), UsageError) << axis;
  }
}

// They fail, and say nothing of the others.
TEST(Fit, ValuesThatMakeNoSenseDoNotHold) {
  Study study;
  FitRequest request{.base = {.step = {"gpt2-124m:layers=2,sequence=64,batch=1"}, .machine = "a100-sxm-80gb"},
                     .axis = parse_axis("heads=6..2000"),
                     .conditions = {"fits"}};
  const FitResult result = fit(study, request, nullptr);
  ASSERT_TRUE(result.edge.last);
  for (const FitProbe& probe : result.probes) EXPECT_TRUE(probe.point.ran() || !probe.point.record.error.empty());
  for (const std::size_t anomaly : result.edge.anomalies) EXPECT_TRUE(result.probe(anomaly)->point.ran());
}

TEST(Fit, SaysWhatStopsTheNextValue) {
  Study study;
  GptShape shape;
  shape.layers = 2;
  study.add_step("gpt", gpt_step(shape));
  FitRequest request{.base = {.step = {"gpt"}, .machine = "a100-sxm-80gb"},
                     .axis = parse_axis("scale.kernels=1..100"),
                     .conditions = {"fits", "step_time_s < 1s"}};
  const double once =
      to_seconds(mean_step(study.run({.step = {"gpt"}, .machine = "a100-sxm-80gb"}, {.record = false}).run));
  request.conditions[1] = "step_time_s < " + std::to_string(once * 1e6 * 20) + "us";
  const FitResult result = fit(study, request, nullptr);
  ASSERT_TRUE(result.edge.last);
  EXPECT_FALSE(result.was_scanned);
  ASSERT_NE(result.next(), nullptr);
  EXPECT_EQ(result.next()->value, *result.edge.last + 1);
  EXPECT_EQ(result.next()->broken, std::vector<std::string>{request.conditions[1]});
  // As every value says.
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    Scenario s = request.base;
    s.scale = {"kernels=" + result.values[i]};
    const bool holds = to_seconds(mean_step(study.run(s, {.record = false}).run)) * 1e6 < once * 1e6 * 20;
    EXPECT_EQ(holds, i <= *result.edge.last) << i;
  }
  request.jobs = 3;
  const FitResult parallel = fit(study, request, nullptr);
  EXPECT_EQ(parallel.edge.last, result.edge.last);
  EXPECT_EQ(parallel.edge.probed, result.edge.probed) << "what is looked at does not depend on threads";
  request.largest = false;
  request.conditions = {"fits"};
  EXPECT_EQ(fit(study, request, nullptr).values[*fit(study, request, nullptr).edge.last], "1");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
