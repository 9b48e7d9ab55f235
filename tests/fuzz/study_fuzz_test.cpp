// Whatever happens to a study file, an axis, an expression or a picture's settings: is it read, or refused with a
// sentence, and nothing else?
#include <gtest/gtest.h>

#include <random>

#include "sim/error.h"
#include "study/charts/sweep_figure.h"
#include "study/sweep/expression.h"
#include "study/sweep/study_file.h"
#include "study/sweep/sweep.h"
#include "tests/support/damage.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Read {
  int read = 0, refused = 0;
};

template <class Error, class Parse>
void feed_text(const std::string& text, const Parse& parse, Read& counts) {
  try {
    parse(text);
    ++counts.read;
  } catch (const Error& error) {
    EXPECT_GT(std::string(error.what()).size(), 20u) << text;
    EXPECT_LT(std::string(error.what()).size(), 4000u) << text;
    ++counts.refused;
  }
}

template <class Error, std::size_t N, class Parse>
Read feed_all(const char* const (&texts)[N], int rounds, const Parse& parse) {
  std::mt19937_64 random(20261128);
  Read counts;
  for (int round = 0; round < rounds; ++round)
    feed_text<Error>(damaged(texts[static_cast<std::size_t>(round) % N], random), parse, counts);
  EXPECT_GT(counts.read, rounds / 50);
  EXPECT_GT(counts.refused, rounds / 50);
  return counts;
}

constexpr const char* kStudies[] = {
    "title: \"Links\"\nstep: \"llama3.2-1b:batch=2\"\nmachine: \"h100-sxm-80gb\"\nover: \"pcie=16..128GB/s:log:7\"\n"
    "over: \"policy=none|offload:what=activations\"\nobjective: \"step_time\"\nfigure: \"x.svg=line\"\n",
    "step: \"a.mwt\" machine: \"t4\" machine: \"a10\" zip: \"batch,sequence\" sample: \"latin:20:7\" where: \"fits\" "
    "show: \"peak\" set: \"pcie=gen5\" scale: \"host=0.5\" policy: \"checkpoint\"\n"};

TEST(StudyFuzz, DamagedStudiesAreReadOrRefusedInASentence) {
  feed_all<InputError>(kStudies, 4000, [](const std::string& text) { parse_study_file(text, "fuzzed.study"); });
}

constexpr const char* kAxesTexts[] = {"policy=none|checkpoint|offload:what=activations",
                                      "link.pcie_h2d.bandwidth=16..64GB/s:log:9",
                                      "batch=1..64",
                                      "zero.stage=1|2|3 if policy=zero",
                                      "fraction=0..1:5",
                                      "budget=8..40GiB:step=4"};

// Points of what is read are made, too.
TEST(StudyFuzz, DamagedAxesAreReadOrRefusedInASentence) {
  feed_all<UsageError>(kAxesTexts, 20'000, [](const std::string& text) {
    const Axis axis = parse_axis(text);
    EXPECT_FALSE(axis.values.empty()) << text;
    EXPECT_LE(axis.values.size(), kMostAxisValues) << text;
    if (axis.values.size() < 1000) points_of({.axes = {axis}});
  });
}

constexpr const char* kExpressions[] = {"fits and step_time_s < 1.2s and tiers.hbm.peak_reserved_bytes <= 70GiB",
                                        "price_dollars / (step_time_s * samples_per_s)",
                                        "not (a + 2 * -b >= 3 or c == 20%) and 1.5ms < d", "((((1))))"};

TEST(StudyFuzz, DamagedExpressionsHaveAValueOrAreRefused) {
  feed_all<UsageError>(kExpressions, 20'000, [](const std::string& text) {
    const Expression expression(text);
    (void)expression.value([](const std::string& name) { return std::optional<double>(name.size()); });
  });
}

constexpr const char* kFigures[] = {"line:x=pcie,y=step_time,series=policy+batch,log=x+y", "pareto:x=peak,y=throughput",
                                    "heatmap:x=batch,y=pcie,value=peak,policy=none", "tornado:value=peak", "budget"};

TEST(StudyFuzz, DamagedPicturesAreReadOrRefusedInASentence) {
  SweepRequest request{.base = {.step = {"gpt"}}, .space = {}, .objective = "step_time"};
  for (const char* axis : {"policy=none|plan", "batch=1|2|3", "pcie=16GB/s|32GB/s", "budget=8GB|16GB"})
    request.space.axes.push_back(parse_axis(axis));
  feed_all<UsageError>(kFigures, 10'000, [&](const std::string& text) { parse_sweep_figure(text, request); });
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
