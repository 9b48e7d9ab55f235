// Whatever happens to a study file, an axis, an expression or a picture's settings: is it read, or refused with a
// sentence, and nothing else?
#include <gtest/gtest.h>

#include <simdjson.h>

#include <random>

#include "sim/error.h"
#include "study/charts/sweep_figure.h"
#include "study/sweep/asked_points.h"
#include "study/sweep/expression.h"
#include "study/sweep/study_file.h"
#include "study/sweep/sweep.h"
#include "study/sweep/sweep_shard.h"
#include "tests/support/damage.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

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

constexpr const char* kAskedLines[] = {
    "{\"id\": 7, \"set\": {\"policy\": \"checkpoint:mode=full\", \"pcie\": \"32GB/s\", \"repeat\": 2}}",
    "{\"id\": [\"a\", null], \"set\": {\"budget\": \"40%\", \"scale.host\": 0.5, \"allocator\": \"ideal\"}}"};

// Whatever a line says, its answer is one line of JSON with the same keys, and a point or a sentence.
TEST(StudyFuzz, DamagedLinesThatAskForPointsAreAnswered) {
  Study study;
  StepProgram step;
  step.op("mm", {}, {step.make(4096, "made")});
  study.add_step("small", std::move(step).finish());
  study.add_machine("round", test_machine());
  AskedPoints points(study, {.base = {.step = {"small"}, .machine = "round"}, .objective = "step_time"}, nullptr);
  std::mt19937_64 random(20261129);
  simdjson::dom::parser parser;
  int ran = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string line = damaged(kAskedLines[static_cast<std::size_t>(round) % 2], random);
    std::erase(line, '\n');
    const std::string answer = points.answer(line, 1);
    ASSERT_EQ(answer.find('\n'), answer.size() - 1) << line;
    simdjson::dom::object told;
    ASSERT_FALSE(parser.parse(answer).get(told)) << line << " gave " << answer;
    EXPECT_EQ(told.size(), 7u);
    const bool is_refused = !told["error"].is_null();
    if (is_refused) {
      EXPECT_GT(std::string_view(told["error"]).size(), 20u) << answer;
    }
    ++(is_refused ? refused : ran);
  }
  EXPECT_GT(ran, 30);
  EXPECT_GT(refused, 300);
}

// A shard's file whose bytes were changed is read as it was, or refused with its name.
TEST(StudyFuzz, DamagedShardsAreReadOrRefused) {
  const ScratchFolder folder;
  const std::filesystem::path file = folder / "shard.sqlite";
  const StudyFile study{.title = "A", .base = {.step = {"small"}}, .axes = {"repeat=1..3"}};
  finish_shard(file, {study, false, "00", {0, 1}, 3},
               {{.fields = {{"fits", 1}, {"step_time_s", 0.25}}}, {.error = "It cannot be.", .cause = "input"}, {}});
  const std::string whole = content_of(file.string());
  ASSERT_EQ(merged_shards({file}).study, study);
  std::mt19937_64 random(20261129);
  int read = 0, refused = 0;
  for (int round = 0; round < 600; ++round) {
    std::string bytes = whole;
    for (int i = 0; i < 1 + round % 40; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    std::filesystem::remove(folder / "damaged.sqlite-wal");
    std::filesystem::remove(folder / "damaged.sqlite-shm");
    write_content((folder / "damaged.sqlite").string(), bytes);
    try {
      EXPECT_LE(merged_shards({folder / "damaged.sqlite"}).records.size(), kMostPoints);
      ++read;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("damaged.sqlite"), std::string::npos) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(read, 10);
  EXPECT_GT(refused, 10);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
