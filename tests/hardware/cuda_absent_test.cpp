// What do the programs say where no GPU can be used? Skipped where one can.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "sim/error.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "validate/replay/cuda_backend.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace {

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
  const std::string line = std::string(MEMWALL_REPLAY_PROGRAM) + " " + (folder / "x.schedule").string() +
                           " --backend cuda -o " + (folder / "x.execution.csv").string() + " >" +
                           (folder / "out").string() + " 2>" + (folder / "err").string();
  const int status = std::system(line.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_NE(content_of(folder / "err").find(cuda_unavailable_reason()), std::string::npos)
      << content_of(folder / "err");
  EXPECT_EQ(content_of(folder / "out"), "");
  EXPECT_FALSE(std::filesystem::exists(folder / "x.execution.csv"));
}

}  // namespace
}  // namespace memwall
