// Does memwall sweep --ask-tell answer what other programs ask: in any order, several at once, with a sentence for what
// is wrong with a line; and can a searcher work with it?
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstdlib>
#include <map>
#include <sstream>

#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSample = MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt";

class AskTell : public ::testing::Test {
 protected:
  // Answers by id, as JSON.
  std::map<std::string, std::string> ask(const std::string& lines, const std::string& options) {
    write_content(folder_ / "lines", lines);
    outcome_ = run_command("'" MEMWALL_PROGRAM "' sweep " + options + " --ask-tell < lines", folder_.path());
    std::map<std::string, std::string> answers;
    std::istringstream out(outcome_.out);
    simdjson::dom::parser parser;
    for (std::string line; std::getline(out, line);) {
      const simdjson::dom::element answer = parser.parse(line);
      answers[simdjson::minify(answer["id"])] += line;
      EXPECT_EQ(simdjson::dom::object(answer).size(), 7u) << line;
    }
    return answers;
  }
  static std::string text(const std::string& answer, const char* key) {
    simdjson::dom::parser parser;
    const simdjson::dom::element value = parser.parse(answer)[key];
    return value.is_null() ? "" : std::string(std::string_view(value));
  }
  static double objective(const std::string& answer, const char* name = "step_time") {
    simdjson::dom::parser parser;
    return double(parser.parse(answer)["objectives"][name]);
  }

  ScratchFolder folder_;
  CommandOutcome outcome_;
};

TEST_F(AskTell, PointsAreThoseOfTheSweepHoweverManyAreInFlight) {
  const std::string options =
      "'" + kSample + "' --machine a100-sxm-80gb --objective step_time --where fits --no-journal";
  const CommandOutcome study = run_command(
      "'" MEMWALL_PROGRAM "' sweep " + options + " --over 'policy=none|checkpoint' --over repeat=1,2,3 --ndjson -",
      folder_.path());
  std::string lines;
  std::map<std::string, double> expected;
  std::istringstream points(study.out);
  simdjson::dom::parser parser;
  for (std::string line; std::getline(points, line);) {
    const simdjson::dom::element point = parser.parse(line);
    const std::string id = std::to_string(expected.size());
    expected[id] = double(point["objective"]);
    lines += fmt::format("{{\"id\": {}, \"set\": {{\"repeat\": {}, \"policy\": {}}}}}\n", id,
                         std::string_view(point["axes"]["repeat"]), simdjson::minify(point["axes"]["policy"]));
  }
  ASSERT_EQ(expected.size(), 6u);
  for (const char* jobs : {"1", "4"}) {
    const auto answers = ask(lines, options + " --jobs " + jobs);
    EXPECT_EQ(outcome_.code, 0) << outcome_.err;
    ASSERT_EQ(answers.size(), 6u) << outcome_.out;
    for (const auto& [id, time] : expected) EXPECT_EQ(objective(answers.at(id)), time);
  }
}

// Points of a divided job are folded as those of a sweep, but for a field that a folded job does not say.
TEST_F(AskTell, FoldsDividedJobs) {
  const std::string options =
      "gpt3-175b:layers=8,width=2048,heads=16,sequence=1024,tensor=2,pipeline=2,micro_batch=1,batch=16 "
      "--machine dgx-a100-80gb --objective step_time --show peak_reserved --no-journal";
  const std::string lines = "{\"id\": 1, \"set\": {\"interleave\": 2}}\n{\"id\": 2, \"set\": {\"pipeline\": 4}}\n";
  const auto folded = ask(lines, options);
  ASSERT_EQ(outcome_.code, 0) << outcome_.err;
  const auto whole = ask(lines, options + " --written-out");
  ASSERT_EQ(outcome_.code, 0) << outcome_.err;
  const auto detailed = ask(lines, options + " --show critical_path.copy");
  simdjson::dom::parser parser;
  const auto peak = [&parser](const std::string& answer) {
    return double(parser.parse(answer)["fields"]["peak_reserved"]);
  };
  for (const char* const id : {"1", "2"}) {
    const double expected = objective(whole.at(id));
    EXPECT_NEAR(objective(folded.at(id)), expected, 0.012 * expected);
    EXPECT_NE(objective(folded.at(id)), expected) << "to the picosecond: it was not folded";
    EXPECT_EQ(peak(folded.at(id)), peak(whole.at(id)));
    EXPECT_EQ(objective(detailed.at(id)), expected);
  }
}

TEST_F(AskTell, WhatIsWrongWithALineIsItsErrorAndEndsNothing) {
  const auto answers =
      ask("{\"id\": \"a\", \"set\": {\"polcy\": \"none\"}}\n"
          "{\"id\": \"b\", \"set\": {\"pcie\": \"32GiB\"}}\n"
          "nonsense\n\n"
          "{\"id\": \"c\", \"set\": [1]}\n"
          "{\"id\": \"d\"}\n"
          "{\"id\": \"e\", \"set\": {}, \"more\": 1}\n"
          "{\"id\": \"f\", \"set\": {\"policy\": \"checkpoint\", \"policy\": \"none\"}}\n"
          "{\"id\": \"g\", \"set\": {\"budget\": true}}\n"
          "{\"id\": {\"any\": [1, null]}, \"set\": {\"policy\": null, \"repeat\": 2}}",
          "'" + kSample + "' --machine a100-sxm-80gb --objective step_time --show mfu --no-journal");
  EXPECT_EQ(outcome_.code, 0) << outcome_.err;
  const std::pair<const char*, const char*> refusals[] = {{"\"a\"", "Did you mean 'policy'?"},
                                                          {"\"b\"", "32GiB"},
                                                          {"null", "Line 3: it is no object of JSON"},
                                                          {"\"c\"", "expected an object of axes"},
                                                          {"\"d\"", "no \"set\""},
                                                          {"\"e\"", "a key \"more\""},
                                                          {"\"f\"", "policy twice"},
                                                          {"\"g\"", "budget as true"}};
  for (const auto& [id, words] : refusals) {
    const std::string& answer = answers.at(id);
    EXPECT_NE(text(answer, "error").find(words), std::string::npos) << answer;
    EXPECT_NE(answer.find("\"feasible\": false"), std::string::npos) << answer;
  }
  const std::string& good = answers.at("{\"any\":[1,null]}");
  EXPECT_EQ(text(good, "error"), "");
  EXPECT_GT(objective(good), 0.06);
  EXPECT_NE(text(good, "scenario").find("repeat=2"), std::string::npos) << good;
  EXPECT_NE(good.find("\"mfu\": 0."), std::string::npos) << good;
}

TEST_F(AskTell, ConditionsSayWhatIsFeasible) {
  const auto answers =
      ask("{\"id\": 1, \"set\": {\"budget\": \"4GiB\"}}\n{\"id\": 2, \"set\": {\"budget\": \"40GiB\"}}\n"
          "{\"id\": 3, \"set\": {\"budget\": \"60GiB\"}}\n{\"id\": 4, \"set\": {\"pcie\": \"gen5\"}}\n",
          "'" + kSample +
              "' --machine a100-sxm-80gb --objective step_time --where fits --where 'budget < 50GiB' --over "
              "budget=1..64GiB:4 --no-journal");
  const char* const expected[] = {"\"fits\": false, \"feasible\": false", "\"fits\": true, \"feasible\": true",
                                  "\"fits\": true, \"feasible\": false", "which is no axis of --over"};
  for (int id = 1; id <= 4; ++id)
    EXPECT_NE(answers.at(std::to_string(id)).find(expected[id - 1]), std::string::npos)
        << answers.at(std::to_string(id));
}

TEST_F(AskTell, FinishedPointsAreTakenFromTheJournal) {
  const std::string line = "{\"id\": 1, \"set\": {\"policy\": \"checkpoint\"}}\n",
                    options = "'" + kSample + "' --machine a100-sxm-80gb --objective step_time";
  const auto first = ask(line, options);
  const auto again = ask(line, options);
  EXPECT_EQ(first, again);
  const CommandOutcome study =
      run_command("'" MEMWALL_PROGRAM "' sweep " + options + " --over policy=checkpoint", folder_.path());
  EXPECT_NE(study.err.find("1 of 1 point came from"), std::string::npos) << study.err;
}

TEST_F(AskTell, MistakesOfTheCommandAreToldBefore) {
  const std::string step = "'" + kSample + "' --machine a100-sxm-80gb --no-journal ";
  ask("", step + "--objective 'step_time <'");
  EXPECT_EQ(outcome_.code, 2);
  ask("", step + "--csv x.csv");
  EXPECT_EQ(outcome_.code, 2);
  EXPECT_NE(outcome_.err.find("--ask-tell"), std::string::npos);
  ask("{\"id\": 1, \"set\": {\"step\": \"gpt2-124m:sequence=64\"}}\n{\"id\": 2, \"set\": {}}\n",
      "--machine a100-sxm-80gb --no-journal --objective step_time");
  EXPECT_EQ(outcome_.code, 0) << outcome_.err;
  EXPECT_NE(outcome_.out.find("There is no step"), std::string::npos) << outcome_.out;
}

// Without a line: whoever asks has not begun to.
TEST_F(AskTell, AMistypedFieldIsToldBeforeTheFirstLine) {
  const std::string step = "'" + kSample + "' --machine a100-sxm-80gb --no-journal ";
  for (const char* goal : {"--objective step_tme", "--objective 'max samples_per_sec'", "--where 'fits and peek < 9GB'",
                           "--objective step_time --show total", "--over policy=none --objective step_tme"}) {
    ask("", step + goal);
    EXPECT_EQ(outcome_.code, 2) << goal << outcome_.out;
    EXPECT_NE(outcome_.err.find("Did you mean '"), std::string::npos) << goal << outcome_.err;
  }
  ask("", step + "--objective step_tme");
  EXPECT_NE(outcome_.err.find("Did you mean 'step_time'?"), std::string::npos) << outcome_.err;
  // Fields that only the whole JSON has, and axes that lines set.
  for (const char* goal :
       {"--objective mfu", "--objective 'step_time * repeat'", "--objective critical_path.compute_s"}) {
    ask("", step + goal);
    EXPECT_EQ(outcome_.code, 0) << goal << outcome_.err;
  }
}

// What the command alone cannot tell, the answers do.
TEST_F(AskTell, AMistypedFieldOfAStepThatLinesSetIsTheirError) {
  const auto answers = ask("{\"id\": 1, \"set\": {\"step\": \"gpt2-124m:sequence=64\"}}\n",
                           "--machine a100-sxm-80gb --no-journal --objective step_tme");
  EXPECT_EQ(outcome_.code, 0) << outcome_.err;
  EXPECT_NE(text(answers.at("1"), "error").find("Did you mean 'step_time'?"), std::string::npos) << outcome_.out;
}

std::string python() {
  const char* const named = std::getenv("MEMWALL_PYTHON");
  return fmt::format("'{}'", named == nullptr ? "python3" : named);
}

TEST_F(AskTell, AProgramFindsTheLeastBudget) {
  if (run_command(python() + " -c ''", ".").code != 0) GTEST_SKIP() << "no python3 here";
  const CommandOutcome o = run_command(fmt::format("{} '{}/tests/smoke/ask_and_tell.py' '{}' '{}' a100-sxm-80gb",
                                                   python(), MEMWALL_SOURCE, MEMWALL_PROGRAM, kSample),
                                       folder_.path());
  ASSERT_EQ(o.code, 0) << o.err;
  int budget = 0, asked = 0;
  std::istringstream(o.out) >> budget >> asked;
  EXPECT_GT(asked, 9);
  const CommandOutcome fit = run_command("'" MEMWALL_PROGRAM "' fit '" + kSample +
                                             "' --machine a100-sxm-80gb --policy checkpoint --over "
                                             "budget=256..16384MiB:step=64 --smallest --no-journal --format json",
                                         folder_.path());
  simdjson::dom::parser parser;
  const simdjson::padded_string json(fit.out);
  EXPECT_NEAR(budget, double(parser.parse(json)["number"]) / (1 << 20), 128) << fit.err;
}

TEST_F(AskTell, OptunaFindsAPointThatFits) {
  if (run_command(python() + " -c 'import optuna'", ".").code != 0)
    GTEST_SKIP() << "no python with optuna here; MEMWALL_PYTHON may name one";
  const CommandOutcome o = run_command(fmt::format("{} '{}/docs/examples/optuna_search.py' '{}' a100-sxm-80gb 25 '{}'",
                                                   python(), MEMWALL_SOURCE, kSample, MEMWALL_PROGRAM),
                                       folder_.path());
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("25 trials"), std::string::npos) << o.out;
  // Nothing beats the step as it is, where that fits; a search that is none would end elsewhere as well.
  const CommandOutcome best =
      run_command("'" MEMWALL_PROGRAM "' run '" + kSample + "' --machine a100-sxm-80gb --format json", folder_.path());
  simdjson::dom::parser parser;
  const simdjson::padded_string json(best.out);
  EXPECT_NE(o.out.find(fmt::format("takes {:.6f} s", double(parser.parse(json)["step_time_s"]))), std::string::npos)
      << o.out;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
