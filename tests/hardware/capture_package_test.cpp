// Does the Python package memwall_capture record what PyTorch does? Its own tests, where torch is there (python3, or
// the program that MEMWALL_PYTHON names); no GPU is needed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/command.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(CapturePackage, ItsOwnTestsPass) {
  const char* named = std::getenv("MEMWALL_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  if (run_command(fmt::format("{} -c 'import torch' 2>&1", python), ".").code != 0)
    GTEST_SKIP() << "no python with torch here; MEMWALL_PYTHON may name one";
  for (const char* file :
       {"capture_test.py", "planned_test.py", "compiled_test.py", "fully_sharded_test.py", "timing_test.py"}) {
    const CommandOutcome tests =
        run_command(fmt::format("{} {}/traces/capture/tests/{} 2>&1", python, MEMWALL_SOURCE, file), ".");
    EXPECT_EQ(tests.code, 0) << tests.out;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
