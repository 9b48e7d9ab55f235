// Does the line that --one-line prints give, in another folder, what it was printed for?
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <sstream>
#include <string>

#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class OneLine : public ::testing::Test {
 protected:
  OneLine() { write_content(folder_ / "it's a step.mwt", content_of(MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt")); }

  std::string line(const std::string& arguments, int code = 0) const {
    const CommandOutcome o = run_memwall(folder_, arguments + " --one-line");
    EXPECT_EQ(o.code, code) << o.err;
    return o.out;
  }
  // By a shell that finds memwall in its path, in a folder that knows nothing.
  std::string carried_out(std::string command) const {
    EXPECT_TRUE(command.ends_with('\n')) << command;
    if (!command.empty()) command.pop_back();
    EXPECT_EQ(command.find('\n'), std::string::npos) << "one line";
    const ScratchFolder elsewhere;
    const std::string path = std::filesystem::path(MEMWALL_PROGRAM).parent_path().string();
    const CommandOutcome o =
        run_command("PATH='" + path + "':\"$PATH\"; " + command + " --format json --no-provenance", elsewhere.path());
    EXPECT_TRUE(o.code == 0 || o.code == 3) << command << o.err;
    return o.out;
  }
  static double number(const std::string& json, const char* key) {
    simdjson::dom::parser parser;
    return double(parser.parse(simdjson::padded_string(json))[key]);
  }

  ScratchFolder folder_;
};

const std::string kStep = "\"it's a step.mwt\"";

TEST_F(OneLine, OfARunIsTheSameJson) {
  write_content(folder_ / "mine.textproto", content_of(MEMWALL_SOURCE "/models/hw/machines/a100-sxm-80gb.textproto"));
  for (const char* question :
       {"--machine ./mine.textproto --policy checkpoint:mode=full",
        "--machine h100-sxm-80gb --set pcie=gen5 --scale host=0.5",
        "--machine a100-sxm-80gb --budget 6GiB --pager lru --steps 2 --alloc-conf expandable_segments:True",
        "--machine a100-sxm-80gb --allocator ideal --policy offload:what=activations"}) {
    const CommandOutcome o =
        run_memwall(folder_, fmt::format("run {} {} --format json --no-provenance", kStep, question));
    ASSERT_FALSE(o.out.empty()) << o.err;
    EXPECT_EQ(carried_out(line(fmt::format("run {} {}", kStep, question))), o.out) << question;
  }
}

TEST_F(OneLine, OfAGeneratedStepWithSettingsAndItsFile) {
  write_content(folder_ / "net.textproto", "base: \"gpt2-124m\"\nmodel { layers: 2 }\n");
  const std::string question = "run ./net.textproto:batch=2,sequence=64 --machine a100-sxm-80gb";
  EXPECT_EQ(carried_out(line(question)), run_memwall(folder_, question + " --format json --no-provenance").out);
}

TEST_F(OneLine, OfASweepIsEachPointTheBestFirst) {
  const std::string study =
      "sweep " + kStep +
      " --machine a100-sxm-80gb --over 'policy=none|checkpoint|checkpoint:modules=nowhere' --over "
      "pcie=16..64GB/s:3 --objective step_time --no-journal";
  std::istringstream lines(line(study, 5));
  std::vector<double> times;
  for (std::string one; std::getline(lines, one);) times.push_back(number(carried_out(one + "\n"), "step_time_s"));
  ASSERT_EQ(times.size(), 6u) << "those that ran";
  EXPECT_TRUE(std::ranges::is_sorted(times));
  const CommandOutcome o = run_memwall(folder_, study + " --json -");
  simdjson::dom::parser parser;
  std::vector<double> told;
  const simdjson::padded_string text(o.out);
  for (const auto point : simdjson::dom::array(parser.parse(text)["points"]))
    if (point["error"].is_null()) told.push_back(double(point["fields"]["step_time_s"]));
  std::ranges::sort(told);
  for (std::size_t i = 0; i < told.size(); ++i) EXPECT_DOUBLE_EQ(times[i], told[i]);
}

TEST_F(OneLine, OfAFitIsTheValueThatWasFound) {
  const std::string question =
      "fit gpt2-124m:sequence=128 --machine a100-sxm-80gb --set gpu.hbm.capacity=8GiB --no-journal";
  simdjson::dom::parser parser;
  const simdjson::padded_string json(run_memwall(folder_, question + " --format json").out);
  const simdjson::dom::element fit = parser.parse(json);
  const std::string wanted = std::string(std::string_view(fit["value"]));
  double time = 0;
  for (const auto probe : simdjson::dom::array(fit["probes"]))
    if (std::string_view(probe["value"]) == wanted) time = double(probe["fields"]["step_time_s"]);
  ASSERT_GT(time, 0);
  EXPECT_DOUBLE_EQ(number(carried_out(line(question)), "step_time_s"), time);
  EXPECT_EQ(
      line("fit " + kStep + " --machine a100-sxm-80gb --over pcie=16..64GB/s:3 --where 'step_time < 1us' --no-journal",
           3),
      "");
}

TEST_F(OneLine, OfAPlanIsTheRecommendedStep) {
  for (const char* budget : {"8GiB", "60%"}) {
    const std::string question =
        fmt::format("plan {} --machine a100-sxm-80gb --budget {} --no-smallest", kStep, budget);
    simdjson::dom::parser parser;
    const simdjson::padded_string json(run_memwall(folder_, question + " --format json").out);
    const simdjson::dom::element plan = simdjson::dom::array(parser.parse(json)["plans"]).at(0);
    EXPECT_DOUBLE_EQ(number(carried_out(line(question)), "step_time_s"), double(plan["step_time_s"])) << budget;
  }
}

TEST_F(OneLine, FoldersOfTheEnvironmentStandBeforeIt) {
  std::filesystem::create_directory(folder_ / "machines");
  write_content(folder_ / "machines" / "mine.textproto",
                content_of(MEMWALL_SOURCE "/models/hw/machines/a100-sxm-80gb.textproto"));
  const CommandOutcome o =
      run_memwall(folder_, "run gpt2-124m:sequence=64 --machine mine --one-line", "MEMWALL_MACHINES=machines");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_GT(number(carried_out(o.out), "step_time_s"), 0);
}

TEST_F(OneLine, WhatCannotBeReadAgainIsRefused) {
  const CommandOutcome o = run_command("cat " + kStep + " | '" MEMWALL_PROGRAM "' run - --one-line", folder_.path());
  EXPECT_EQ(o.code, 2);
  EXPECT_NE(o.err.find("through a pipe"), std::string::npos) << o.err;
  EXPECT_EQ(run_memwall(folder_, "run " + kStep + " --one-line --policy chekpoint").code, 2);
  EXPECT_EQ(run_memwall(folder_, "run " + kStep + " --one-line -o x.h5").code, 2);
  write_content(folder_ / "no_step", "nothing that a step begins with");
  for (const char* step : {"absent.mwt", "gpt2-123m", "no_step", "absent/", "\"it's a step.mwt\" absent.json"}) {
    const CommandOutcome run = run_memwall(folder_, fmt::format("run {} --machine a100-sxm-80gb", step)),
                         line = run_memwall(folder_, fmt::format("run {} --machine a100-sxm-80gb --one-line", step));
    EXPECT_EQ(line.code, 6) << step << line.out;
    EXPECT_EQ(line.err, run.err) << step;
    EXPECT_EQ(line.out, "") << step;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
