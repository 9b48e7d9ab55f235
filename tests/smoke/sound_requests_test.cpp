// Valid requests get an answer, whatever order they are written in: none ends in "the trace is not sound".
#include <gtest/gtest.h>

#include <string>

#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSample = MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt";

std::string answer_of(const ScratchFolder& folder, const std::string& arguments) {
  const CommandOutcome o = run_memwall(folder, arguments);
  EXPECT_EQ(o.code, 0) << arguments << "\n" << o.err;
  EXPECT_EQ(o.err.find("not sound"), std::string::npos) << arguments << "\n" << o.err;
  return o.out;
}

// All of a run's JSON but the policies' texts.
std::string figures_of(const std::string& json) {
  const std::size_t begin = json.find("\"policies\""), end = json.find(']', begin);
  EXPECT_NE(end, std::string::npos);
  return json.substr(0, begin) + json.substr(end);
}

TEST(SoundRequests, OptimizerAndGradientsAsTwoPoliciesInAnyOrder) {
  const ScratchFolder folder;
  const std::string run = "run '" + kSample + "' --no-provenance --format json";
  const std::string optimizer = " --policy offload:what=optimizer,to=host",
                    gradients = " --policy offload:what=gradients,to=host";
  const std::string one = answer_of(folder, run + optimizer + gradients);
  EXPECT_EQ(figures_of(one), figures_of(answer_of(folder, run + gradients + optimizer)));
}

TEST(SoundRequests, OptimizerInADriveThatComputes) {
  const ScratchFolder folder;
  const std::string out = answer_of(folder, "run '" + kSample +
                                                "' --machine '" MEMWALL_SOURCE
                                                "/tests/machines/near-memory.textproto'"
                                                " --policy offload:what=optimizer,to=ssd");
  EXPECT_NE(out.find("the optimizer step runs in the memory of ssd"), std::string::npos);
}

TEST(SoundRequests, APagersMovesOfWhatNobodyHasWritten) {
  const ScratchFolder folder;
  answer_of(folder, "schedule '" + kSample + "' --pager lru --set gpu.hbm.capacity=6GB -o paged.schedule");
  EXPECT_NE(content_of(folder / "paged.schedule").find("pager hbm to host"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
