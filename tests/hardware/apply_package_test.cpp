// Does the Python package memwall_apply do what plans say? Its own tests, where torch and pytest are there (python3, or the
// program that MEMWALL_PYTHON names); no GPU is needed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/command.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

void run_apply_tests(const std::string& files) {
  const char* named = std::getenv("MEMWALL_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  if (run_command(fmt::format("{} -c 'import torch, pytest' 2>&1", python), ".").code != 0)
    GTEST_SKIP() << "no python with torch and pytest here; MEMWALL_PYTHON may name one";
  // The Python package memwall stands beside the program, where it is built.
  const std::filesystem::path package = std::filesystem::path(MEMWALL_PROGRAM).parent_path().parent_path() / "study/python";
  const CommandOutcome tests =
      run_command(fmt::format("MEMWALL_PROGRAM='{}' PYTHONPATH='{}' {} -m pytest -q -p no:cacheprovider {} 2>&1",
                              MEMWALL_PROGRAM, package.string(), python, files),
                  std::filesystem::path(MEMWALL_SOURCE) / "traces/apply/tests");
  EXPECT_EQ(tests.code, 0) << tests.out;
}

TEST(ApplyPackage, ItsOwnTestsPass) {
  run_apply_tests(
      "equal_test.py refusals_test.py faults_test.py damaged_test.py host_optimizer_test.py example_test.py");
}

// Three minutes: compilers, processes that talk to each other, and a planner in the training process.
TEST(ApplyPackage, ItsTestsOfCompiledAndDistributedStepsPass) {
  if (std::getenv("MEMWALL_LONG") == nullptr) GTEST_SKIP() << "takes minutes; MEMWALL_LONG=1 runs it, as .ci/long does";
  run_apply_tests("compiled_test.py distributed_test.py in_process_test.py");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
