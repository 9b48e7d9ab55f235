// Do PyTorch and DeepSpeed call the collectives that are committed? Recorded anew in processes of gloo on the CPU,
// where torch and deepspeed are there (python3, or the program that MEMWALL_PYTHON names); it takes minutes, so that
// MEMWALL_LONG asks for it. tests/oracle compares with policies.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/command.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

TEST(CollectivesScript, RecordsWhatIsCommitted) {
  if (std::getenv("MEMWALL_LONG") == nullptr) GTEST_SKIP() << "takes minutes: MEMWALL_LONG=1 asks for it";
  const char* named = std::getenv("MEMWALL_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  if (run_command(python + " -c 'import torch, deepspeed' 2>&1", ".").code != 0)
    GTEST_SKIP() << "no python with torch and deepspeed here; MEMWALL_PYTHON may name one";
  const std::filesystem::path committed = MEMWALL_SOURCE "/traces/samples/captures/collectives";
  const ScratchFolder folder;
  const CommandOutcome recorded = run_command(
      fmt::format("{} {}/record_collectives.py --out {} 2>&1", python, committed.string(), folder.path().string()),
      ".");
  ASSERT_EQ(recorded.code, 0) << recorded.out;
  EXPECT_EQ(content_of(folder / "recorded.json"), content_of(committed / "recorded.json"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
