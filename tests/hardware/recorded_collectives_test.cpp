// Do PyTorch and DeepSpeed call the collectives, and torch's pipelines what is committed of them? Recorded anew in
// processes of gloo on the CPU, where torch and deepspeed are there (python3, or the program that MEMWALL_PYTHON
// names); it takes minutes, so that MEMWALL_LONG asks for it. tests/oracle compares with policies.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/command.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// `needed`: Python's packages; `made`: the file that the script writes.
void expect_as_committed(const std::string& script, const std::string& needed, const std::string& made) {
  if (std::getenv("MEMWALL_LONG") == nullptr) GTEST_SKIP() << "takes minutes: MEMWALL_LONG=1 asks for it";
  const char* named = std::getenv("MEMWALL_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  if (run_command(fmt::format("{} -c 'import {}' 2>&1", python, needed), ".").code != 0)
    GTEST_SKIP() << "no python with " << needed << " here; MEMWALL_PYTHON may name one";
  const std::filesystem::path committed = MEMWALL_SOURCE "/traces/samples/captures/collectives";
  const ScratchFolder folder;
  const CommandOutcome recorded = run_command(
      fmt::format("{} {}/{} --out {} 2>&1", python, committed.string(), script, folder.path().string()), ".");
  ASSERT_EQ(recorded.code, 0) << recorded.out;
  EXPECT_EQ(content_of(folder / made), content_of(committed / made));
}

TEST(CollectivesScript, RecordsWhatIsCommitted) {
  expect_as_committed("record_collectives.py", "torch, deepspeed", "recorded.json");
}

TEST(CollectivesScript, RecordsThePipelinesThatAreCommitted) {
  expect_as_committed("record_pipelines.py", "torch", "recorded_pipelines.json");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
