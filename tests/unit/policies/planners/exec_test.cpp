// Is a program of the user's heard, and whatever it does wrong, refused with what it did, with nothing left behind?
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "policies/planners/exec_profile.h"
#include "policies/planners/exec_program.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/sample.h"
#include "tests/support/scratch_folder.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class Exec : public ::testing::Test {
 protected:
  // A shell script; returns its path.
  std::string script(const std::string& text) {
    const std::filesystem::path path = folder_ / "planner.sh";
    write_content(path, "#!/bin/sh\n" + text + "\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }

  static MemoryPlan plan_for(const Trace& trace) {
    const Machine machine = test_machine();
    const std::string policy = "offload:what=activations,to=host,min_bytes=0";
    return plan_rewriters(trace, {parse_policy(policy)}, machine, *test_pricer(machine)).plan;
  }

  // What prints the plan.
  std::string printing(const MemoryPlan& plan, const Trace& trace) {
    write_content(folder_ / "a.plan", to_json(plan, trace, "a test"));
    return "cat '" + (folder_ / "a.plan").string() + "'";
  }

  // Of the policy with this program: the sentence with which it is refused; "" where it is not. The step does not fit
  // the budget, so that the program is asked.
  std::string refused(const std::string& program, const std::string& settings = "") {
    try {
      rewritten(step_, "exec:" + program + ",budget=1MiB" + settings);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }

  void expect_refused(const std::string& program, const std::string& part, const std::string& settings = "") {
    const auto begin = std::chrono::steady_clock::now();
    const std::string sentence = refused(program, settings);
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
    EXPECT_LT(sentence.size(), 9000u);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  }

  // Does the process whose number stands in the file end within a moment? It is nobody's child who asks.
  static bool ends(const std::filesystem::path& file) {
    const std::string process = "/proc/" + std::to_string(std::stoi(content_of(file))) + "/stat";
    for (int i = 0; i < 500; ++i) {
      const std::string state = content_of(process);
      if (state.empty() || state.find(") Z") != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  const Trace step_ = gpt_step({.layers = 2, .hidden = 64, .sequence = 32, .batch = 4});
  ScratchFolder folder_;
};

TEST_F(Exec, CarriesOutWhatAProgramPrints) {
  const Trace step = gpt_step({.layers = 4, .hidden = 256, .heads = 4, .sequence = 256, .batch = 8});
  const std::string cat = printing(plan_for(step), step);
  const Trace after = rewritten(step, "exec:" + script(cat) + ",budget=100MiB");  // without reading its input
  EXPECT_TRUE(has_note(after, "exec: budget"));
  EXPECT_GT(after.ops.size(), step.ops.size());
  const Trace same = rewritten(step, "exec:program=" + script("cat > /dev/null\n" + cat) + ",budget=100MiB");
  EXPECT_EQ(same.ops.size(), after.ops.size());
}

TEST_F(Exec, IsNotAskedWhereTheStepKeepsToTheBudget) {
  const Trace after = rewritten(step_, "exec:" + script("exit 1") + ",budget=1GiB");
  EXPECT_EQ(after.ops.size(), step_.ops.size());
  EXPECT_TRUE(has_note(after, "the step keeps to it as it is; nothing leaves the device"));
}

TEST_F(Exec, EndsWhatAProgramLeavesBehind) {
  const std::string id = (folder_ / "id").string();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(refused(script("sleep 100 &\necho $! > '" + id + "'\n" + printing(plan_for(step_), step_))), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  EXPECT_TRUE(ends(id));
}

TEST_F(Exec, RefusesAProgramThatCannotBeStarted) {
  expect_refused("./no-such-planner", "is neither a file nor a command found on PATH");
  expect_refused("no-such-planner", "is neither a file nor a command found on PATH");
  write_content(folder_ / "data", "no program");
  expect_refused((folder_ / "data").string(), "cannot be started: Permission denied (expected an executable file");
  std::filesystem::permissions(folder_ / "data", std::filesystem::perms::owner_all);
  expect_refused((folder_ / "data").string(), "cannot be started: Exec format error");
}

TEST_F(Exec, RefusesAProgramThatFails) {
  expect_refused(script("cat > /dev/null; echo 'cannot\tdecide\x1b[2J' >&2; exit 1"),
                 "ended with exit code 1; expected 0. It said: cannot\tdecide\\x1b[2J");
  expect_refused(script("kill -SEGV $$"), "was ended by a signal (Segmentation fault)");
  expect_refused(script("dd if=/dev/zero of=/dev/null bs=512M count=1"), "ended with exit code 1", ",memory=64MiB");
}

TEST_F(Exec, RefusesAProgramThatHangs) {
  const std::string id = (folder_ / "id").string();
  expect_refused(script("echo waiting >&2; sleep 100 &\necho $! > '" + id + "'; wait"),
                 "took longer than 0.5 s and was ended. It said: waiting", ",timeout=0.5");
  EXPECT_TRUE(ends(id));
  expect_refused(script("exec >&- 2>&-; sleep 100"), "took longer than 0.2 s", ",timeout=0.2");
}

TEST_F(Exec, RefusesAProgramThatFloods) {
  expect_refused(script("head -c 1000000000 /dev/zero"), "printed more than 268.4 MB");
  expect_refused(script("head -c 100000000 /dev/zero >&2; exit 1"), "ended with exit code 1");
}

TEST_F(Exec, RefusesWhatIsNoPlanForTheStep) {
  expect_refused(script("true"), "it is empty; expected a memory plan in JSON");
  expect_refused(script("echo hello"), "planner.sh' printed: the JSON is damaged");
  expect_refused("cat", "found \"memwall-step-profile\"; expected \"memwall-plan\"");  // from PATH
  const Trace other = gpt_step({.layers = 3, .hidden = 64, .sequence = 32, .batch = 4});
  expect_refused(script(printing(plan_for(other), other)), "the plan is for another program");
  MemoryPlan damaged = plan_for(step_);
  damaged.storages.front().fetches.clear();
  expect_refused(script(printing(damaged, step_)), "the plan cannot be carried out. ");
}

TEST_F(Exec, HearsAProgramBesideItsErrorsAndWhateverItPrints) {
  ExecLimits limits;
  const std::string large(5'000'000, 'x');
  EXPECT_EQ(output_of_program("cat", large, limits), large);
  EXPECT_EQ(output_of_program(script("echo words >&2; printf done"), "", limits), "done");
}

TEST_F(Exec, GivesTheStepsProfile) {
  const Machine machine = test_machine();
  const StepProfile profile(step_, machine);
  const std::string text = profile_document(profile, 12345);
  EXPECT_EQ(text, profile_document(profile, 12345));
  simdjson::dom::parser parser;
  const simdjson::dom::element document = parser.parse(text);
  EXPECT_EQ(document["budget"].get_int64().value(), 12345);
  EXPECT_EQ(document["trace"]["fingerprint"].get_string().value(), fmt::format("{:016x}", program_fingerprint(step_)));
  const auto ops = document["ops"].get_array().value();
  const auto storages = document["storages"].get_array().value();
  ASSERT_EQ(ops.size(), step_.ops.size());
  ASSERT_EQ(storages.size(), step_.storages.size());
  std::size_t gaps = 0;
  for (StorageId s = 0; s < step_.storages.size(); ++s) {
    const auto storage = storages.at(s);
    EXPECT_EQ(storage["bytes"].get_int64().value(), step_.storages[s].bytes);
    const auto uses = storage["uses"].get_array().value();
    ASSERT_EQ(uses.size(), profile.flow().touches(s).size());
    for (std::size_t i = 0; i < uses.size(); ++i)
      EXPECT_EQ(uses.at(i)["op"].get_int64().value(), profile.flow().touches(s)[i].op);
    gaps += storage["gaps"].get_array().value().size();
    EXPECT_EQ(storage["producers"]["ops"].get_array().value().size(), profile.flow().writers(s).size());
  }
  EXPECT_EQ(gaps, profile.gaps().size());
  const auto links = document["machine"]["links"].get_array().value();
  EXPECT_GT(links.size(), 2u);
  EXPECT_EQ(document["passes"].get_array().value().size(), 1u);
}

TEST(ExecExample, IsOfFortyLinesAtMost) {
  const std::string text = content_of(MEMWALL_SOURCE "/policies/planners/example_planner.py");
  EXPECT_GT(text.size(), 100u);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40);
}

TEST(ExecExample, KeepsTheSampleToABudget) {
  const bool has_python = std::system("python3 -c 'import json' > /dev/null 2>&1") == 0;
  if (!has_python) GTEST_SKIP() << "there is no python3";
  const Trace step = sample_gpt_124m();
  Machine machine = test_machine();
  const Bytes budget = simulate(step, machine, {}).tiers.front().peak_reserved * 3 / 4;
  const Trace after =
      rewritten(step, "exec:" MEMWALL_SOURCE "/policies/planners/example_planner.py,budget=" + std::to_string(budget));
  EXPECT_FALSE(has_note(after, "no plan was found"));
  machine.tiers.front().capacity = budget;
  EXPECT_FALSE(simulate(step, machine, {}).fits);
  EXPECT_TRUE(simulate(after, machine, {}).fits);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
