// Does `memwall run` say of a job of stages what each one holds and does, draw its pipeline, and refuse what it cannot?
//
// Exact outputs stand in tests/golden/expected; times are left out: they are the cost model's.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tests/support/golden.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kJob =
    "gpt2-124m:tensor=2,pipeline=3,data_parallel=2,sequence_parallel=1,micro_batch=1,batch=4,sequence=256,"
    "checkpoint=full,precision=bf16,distributed_optimizer=1,main_gradients=fp32";

class Stages : public ::testing::Test {
 protected:
  CommandOutcome run(const std::string& arguments) {
    return run_memwall(folder_, "run " + std::string(kJob) + " --machine dgx-a100-80gb --no-provenance " + arguments);
  }
  ScratchFolder folder_;
};

// What is memory, or says which rank holds what.
std::string without_times(const std::string& csv) {
  std::istringstream in(csv);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const bool of_time = line.find("_s,") != std::string::npos;
    if (line.starts_with("stage_memory,") || (line.starts_with("stages,") && !of_time)) kept += line + "\n";
  }
  return kept;
}

TEST_F(Stages, EachHasARowOfTimesAndOneOfMemory) {
  const CommandOutcome o = run("--format csv");
  ASSERT_EQ(o.code, 0) << o.err;
  expect_golden("run_stages.txt", without_times(o.out));
  for (const char* column : {"compute_s", "recompute_s", "bubble_s", "exposed_tensor_parallel_s",
                             "exposed_data_parallel_s", "exposed_pipeline_s", "exposed_all_ranks_s", "other_s"})
    EXPECT_NE(o.out.find("," + std::string(column) + ","), std::string::npos) << column;
}

TEST_F(Stages, TheAnswerNamesStages) {
  const CommandOutcome o = run("--train-tokens 300B --price-per-gpu-hour 2");
  ASSERT_EQ(o.code, 0) << o.err;
  for (const char* words : {"12 ranks", "It fits: rank ", "(stage ", " peaks: at most ", "MFU", "HFU",
                            "The pipeline's bubble takes", "Training on 3e+11 tokens", "2 $ per GPU and hour"})
    EXPECT_NE(o.out.find(words), std::string::npos) << words << "\n" << o.out;
}

TEST_F(Stages, ThePipelineIsDrawn) {
  ASSERT_EQ(run("-o run.h5").code, 0);
  const CommandOutcome o = run_memwall(folder_, "render run.h5 --view pipeline -o pipeline.svg");
  ASSERT_EQ(o.code, 0) << o.err;
  const std::string svg = content_of(folder_ / "pipeline.svg");
  for (const char* words :
       {"forward of micro-batch 3, stage 2", "backward of micro-batch 0, stage 0", "rank 8 (for 4)"})
    EXPECT_NE(svg.find(words), std::string::npos) << words;
}

TEST_F(Stages, ASlowRankIsNamed) {
  const CommandOutcome o = run("--set 'rank[3].gpu.clock=0.5'");
  ASSERT_EQ(o.code, 0) << o.err;
  for (const char* words :
       {"Rank 3 is a straggler: it computes", "With --scale kernels=2,collectives=1,rank=3 a step takes"})
    EXPECT_NE(o.out.find(words), std::string::npos) << words << "\n" << o.out;
  const CommandOutcome link = run("--set 'rank[3].link.nvlink.bandwidth=1GB/s'");
  EXPECT_EQ(link.code, 2);
  EXPECT_NE(link.err.find("links of one rank alone are not implemented"), std::string::npos) << link.err;
}

// The number behind a key that stands there once or first.
double number_of(const std::string& json, const std::string& key) {
  const std::size_t at = json.find("\"" + key + "\": ");
  return at == std::string::npos ? -1 : std::stod(json.substr(at + key.size() + 4));
}

// What the slowest stage is said to cost is what a better division gains: the head of GPT-2 355M is worth some six
// layers.
TEST_F(Stages, TheCostOfTheSlowestIsWhatAnEvenDivisionGains) {
  const auto json_with = [&](const std::string& layers) {
    return run_memwall(folder_, "run gpt2-355m:pipeline=3,precision=bf16,micro_batch=4,batch=256," + layers +
                                    " --machine dgx-a100-80gb --no-provenance --format json")
        .out;
  };
  const std::string uneven = json_with("first_stage_layers=8,last_stage_layers=8"),
                    even = json_with("first_stage_layers=10,last_stage_layers=4");
  const double step = number_of(uneven, "step_time_s"), cost = number_of(uneven, "slowest_cost_s");
  EXPECT_EQ(number_of(uneven, "slowest_rank"), 2);
  EXPECT_GT(cost, 0.2 * step);
  EXPECT_NEAR(step - cost, number_of(even, "step_time_s"), 0.03 * step);
}

// The last stage, with the logits, is fuller than the first.
TEST_F(Stages, ASweepsPeakIsOfTheFullestRank) {
  const std::string job = "gpt2-124m:pipeline=2,micro_batch=4,batch=8,sequence=256,precision=bf16 --machine dgx-a100-80gb ";
  const std::string whole = run_memwall(folder_, "run " + job + "--no-provenance --format json").out;
  const double peak = number_of(whole, "peak_reserved_bytes");
  const std::string stages = whole.substr(whole.find("\"pipeline\": {"));
  const auto peak_of = [&](const char* rank) {
    return number_of(stages.substr(stages.find(rank)), "peak_reserved_bytes");
  };
  EXPECT_EQ(peak, peak_of("\"rank\": 1,"));
  EXPECT_LT(peak_of("\"rank\": 0,"), peak);
  const CommandOutcome swept = run_memwall(
      folder_, "sweep " + job + "--over 'rank[1].gpu.clock=0.5|1' --where 'step_time > 1us' --show peak,step_time --format csv");
  ASSERT_EQ(swept.code, 0) << swept.err;
  EXPECT_NE(swept.out.find(std::to_string(static_cast<std::int64_t>(peak))), std::string::npos) << swept.out;
}

// Of 6 GPUs the last two share their part of the host with nobody.
TEST_F(Stages, ReplicasMayLieUnevenlyInANode) {
  const CommandOutcome o = run_memwall(
      folder_, "run gpt2-124m:precision=bf16,tensor=2,data_parallel=3,sequence=256 --machine dgx-a100-80gb --no-provenance");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("6 ranks"), std::string::npos) << o.out;
}

TEST_F(Stages, ATrainingIsOfTokens) {
  for (const char* wrong : {"--train-tokens many", "--price-per-gpu-hour 2"}) EXPECT_EQ(run(wrong).code, 2) << wrong;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
