// A job over many GPUs, from its configuration, through every verb that takes a step or a run of one.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>

#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Four GPUs, two programs: a small GPT with several micro-batches.
constexpr const char* kJob =
    "gpt2-124m:precision=bf16,layers=4,width=256,heads=4,sequence=256,tensor=2,pipeline=2,micro_batch=1,batch=4";
constexpr const char* kMachine = " --machine dgx-a100-80gb ";

class DividedJob : public ::testing::Test {
 protected:
  CommandOutcome program(const std::string& arguments) { return run_memwall(folder_, arguments); }
  std::string printed(const std::string& arguments) {
    const CommandOutcome outcome = program(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments << "\n" << outcome.out << outcome.err;
    return outcome.out;
  }
  ScratchFolder folder_;
};

TEST_F(DividedJob, ATraceOfItRunsAsTheJobItself) {
  printed(std::string("generate ") + kJob + " -o step.mwt");
  const std::string direct = printed(std::string("run ") + kJob + kMachine + "--full");
  std::string of_trace = printed(std::string("run step.mwt") + kMachine + "--full");
  EXPECT_NE(direct.find("(4 ranks of the job"), std::string::npos) << direct;
  EXPECT_EQ(direct, of_trace);
}

TEST_F(DividedJob, IsInspectedExplainedAndCompared) {
  EXPECT_NE(printed(std::string("inspect ") + kJob).find("2 of 4 in the job: 0, 2"), std::string::npos);
  EXPECT_NE(printed(std::string("roofline ") + kJob + kMachine).find("What bounds the kernels"), std::string::npos);
  EXPECT_NE(printed(std::string("explain ") + kJob + kMachine).find("A step takes"), std::string::npos);
  printed(std::string("run ") + kJob + kMachine + "-o plain.h5");
  printed(std::string("run ") + kJob + ",interleave=2" + kMachine + "-o interleaved.h5");
  EXPECT_NE(printed("compare plain.h5 interleaved.h5").find("A step of the other run takes"), std::string::npos);
  printed("export plain.h5 --to perfetto -o plain.pftrace");
  printed("export plain.h5 --to chrome -o plain.json");
  std::filesystem::create_directory(folder_ / "profiles");
  printed("export plain.h5 --to kineto -o profiles");
  printed("render plain.h5 -o plain.svg");
  EXPECT_GT(std::filesystem::file_size(folder_ / "plain.svg"), 1000u);
}

TEST_F(DividedJob, RunsUnderMemoryPoliciesRankByRank) {
  for (const char* policy :
       {"--policy offload:what=optimizer", "--policy offload:what=activations,min_bytes=0", "--policy plan:budget=300MB", "--policy offload:what=parameters,min_bytes=0",
        "--pager lru --set gpu.hbm.capacity=2GB"}) {
    const std::string out = printed(std::string("run ") + kJob + kMachine + policy);
    EXPECT_NE(out.find("(4 ranks of the job"), std::string::npos) << policy << "\n" << out;
  }
}

// Their gradients are buffers that live across steps and begin at zero.
TEST_F(DividedJob, IsPlannedWhereOneProgramStandsForAllRanks) {
  const std::string small = "layers=4,width=256,heads=4,sequence=256,batch=4";
  for (const std::string& step : {"gpt2-124m:precision=bf16,tensor=2," + small, "gpt2-llmc:" + small}) {
    const std::string out = printed("compare-policies " + step + kMachine + "--budget 70% --policy plan");
    EXPECT_NE(out.find("the fastest that fits is plan"), std::string::npos) << out;
  }
}

TEST_F(DividedJob, RefusesWhatStagesDoNotHaveInCommon) {
  for (const char* policy : {"zero:stage=1,ranks=2", "fsdp:ranks=2", "ddp:ranks=2", "megatron_optimizer:ranks=2",
                             "deepspeed:stage=1,ranks=2", "batch:2", "accumulate:4"}) {
    const CommandOutcome outcome = program(std::string("run ") + kJob + kMachine + "--policy " + policy);
    EXPECT_EQ(outcome.code, 2) << policy;
    EXPECT_NE(outcome.err.find("needs ranks that hold the same parameters, not stages of a pipeline"),
              std::string::npos)
        << policy << outcome.err;
  }
  for (const char* policy : {"checkpoint:mode=full", "selective:save=gelu", "megatron"}) {
    const CommandOutcome recomputed = program(std::string("run ") + kJob + kMachine + "--policy " + policy);
    EXPECT_EQ(recomputed.code, 2) << policy;
    EXPECT_NE(recomputed.err.find("checkpoint=full"), std::string::npos) << recomputed.err;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
