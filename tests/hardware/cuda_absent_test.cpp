// What do the programs say where no GPU can be used? Skipped where one can.
#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/command.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "validate/replay/cuda_backend.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class CudaAbsent : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_unavailable_reason().empty()) GTEST_SKIP() << "a GPU can be used here";
  }
};

// A sentence that says what is missing and what to do instead.
void expect_helpful(const std::string& message) {
  EXPECT_NE(message.find("the back end \"cuda\""), std::string::npos) << message;
  EXPECT_TRUE(message.find("--backend host") != std::string::npos || message.find("expected") != std::string::npos)
      << message;
  EXPECT_TRUE(message.find("driver") != std::string::npos || message.find("nvcc") != std::string::npos) << message;
  EXPECT_EQ(message.back(), '.') << message;
}

template <typename Function>
std::string usage_error(const Function& function) {
  try {
    function();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST_F(CudaAbsent, TheReasonIsASentence) {
  const std::string reason = cuda_unavailable_reason();
  expect_helpful(reason);
  EXPECT_EQ(cuda_unavailable_reason(), reason) << "asking changes nothing";
  EXPECT_EQ(reason.find("nvcc") != std::string::npos, !cuda_is_built_in()) << reason;
}

TEST_F(CudaAbsent, MakingABackEndSaysTheReason) {
  EXPECT_EQ(usage_error([] { make_cuda_backend({}); }), cuda_unavailable_reason());
  EXPECT_EQ(usage_error([] { cuda_environment(0); }), cuda_unavailable_reason());
}

TEST_F(CudaAbsent, ReplayEndsWithUsageAndLeavesNoFile) {
  const ScratchFolder folder;
  write_schedule(schedule_of(gpt_step({})), folder / "x.schedule");
  const CommandOutcome outcome =
      run_command("'" MEMWALL_REPLAY_PROGRAM "' x.schedule --backend cuda -o x.execution.csv", folder.path());
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find(cuda_unavailable_reason()), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(std::filesystem::exists(folder / "x.execution.csv"));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
