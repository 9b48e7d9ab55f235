// Does `memwall emit` say exactly what it should: settings alone on standard output, sentences beside them, and nothing
// where a framework cannot carry out the plan?
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/golden.h"
#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class EmitCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    const CommandOutcome o =
        run_memwall(folder_, "run '" MEMWALL_SOURCE
                             "/traces/samples/captures/gpt2_124m.mwc.gz' --machine h100-sxm-80gb "
                             "--policy zero:stage=3,ranks=8 --policy offload:what=optimizer,to=host --policy "
                             "checkpoint:mode=full --plan-out step.plan");
    ASSERT_EQ(o.code, 0) << o.err;
  }
  CommandOutcome emit(const std::string& arguments) { return run_memwall(folder_, "emit step.plan " + arguments); }

  const ScratchFolder folder_;
};

TEST_F(EmitCommand, WritesSettingsToStandardOutputAndSentencesBesideThem) {
  const CommandOutcome o = emit("--for transformers");
  EXPECT_EQ(o.code, 0) << o.err;
  expect_golden("emit_transformers.json", o.out);
  expect_golden("emit_transformers.txt", o.err);
}

TEST_F(EmitCommand, WritesNothingWhereThePlanIsNotCarriedOut) {
  const CommandOutcome o = emit("--for torchtitan-0.2.2 -o job.toml");
  EXPECT_EQ(o.code, 2);
  EXPECT_EQ(o.out, "");
  expect_golden("emit_torchtitan.txt", o.err);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "job.toml"));
  const CommandOutcome partial = emit("--for torchtitan-0.2.2 --partial -o job.toml");
  EXPECT_EQ(partial.code, 0);
  EXPECT_EQ(partial.err.find(o.err.substr(0, o.err.find("memwall emit: torchtitan"))), 0u) << "the same sentences";
  EXPECT_TRUE(std::filesystem::exists(folder_ / "job.toml"));
}

TEST_F(EmitCommand, RefusesUnknownFrameworksAndFilesThatAreNoPlan) {
  const CommandOutcome version = emit("--for torchtitan");
  EXPECT_EQ(version.code, 2);
  EXPECT_EQ(version.err.find("memwall emit: --for \"torchtitan\": expected torchtitan-0.2.2, "), 0u) << version.err;
  EXPECT_EQ(run_memwall(folder_, "emit '" MEMWALL_SOURCE "/README.md' --for deepspeed").code, 6);
  EXPECT_EQ(emit("--for deepspeed --partial -o step.plan").code, 2) << "the plan itself is not written over";
  EXPECT_EQ(run_memwall(folder_, "emit - --for megatron --partial < step.plan").code, 0);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
