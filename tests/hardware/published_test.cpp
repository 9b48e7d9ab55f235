// Do published tables become the jobs they describe, and are errors counted as the page says?
#include "validate/published/published.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kVtrain = "vtrain_single_node_a100_iter_time.csv";
constexpr const char* kTorchtune = "torchtune_llama32_3b_ablation_a100.csv";

std::vector<PublishedCase> cases_of(const char* name, const std::string& text) {
  const ScratchFolder folder;
  write_content(folder / name, text);
  return published_cases(folder.path());
}

std::string error_of(const char* name, const std::string& text) {
  try {
    cases_of(name, text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Published, ARowBecomesTheJobItDescribes) {
  const auto cases = cases_of(kVtrain,
                              "# caveats, with, commas\n"
                              "gpus,global_batch,microbatch,hidden,heads,layers,seq,tp,dp,pp,iter_time_ms,confidence\n"
                              "4,64,2,1024,16,24,512,1,4,1,250.5,stored\n"
                              "4,64,2,1024,16,24,512,2,2,1,250.5,stored\n"
                              "2,64,2,1024,16,24,512,1,1,2,250.5,stored\n"
                              "8,64,2,1024,16,24,512,1,1,2,250.5,stored\n");
  ASSERT_EQ(cases.size(), 4U);
  const TrainingJob& job = cases[0].job;
  EXPECT_EQ(cases[0].why_not, "");
  EXPECT_DOUBLE_EQ(cases[0].step_seconds, 0.2505);
  EXPECT_EQ(job.recipe.accumulation, 8);
  EXPECT_EQ(job.recipe.batch, 2);
  EXPECT_EQ(job.recipe.sequence, 512);
  EXPECT_EQ(job.recipe.data_parallel, 4U);
  EXPECT_EQ(job.recipe.checkpoint, ActivationCheckpoint::full);
  EXPECT_EQ(job.model.width, 1024);
  EXPECT_EQ(job.model.layers, 24);
  EXPECT_EQ(cases[1].why_not, "");
  EXPECT_EQ(cases[1].job.recipe.parallel.tensor, 2);
  EXPECT_EQ(cases[2].job.recipe.parallel.pipeline, 2);
  EXPECT_EQ(cases[2].job.recipe.accumulation, 32);
  EXPECT_NE(cases[3].why_not.find("TP x PP x DP"), std::string::npos) << "its GPUs";
}

// What stands in BLOOM's table beside what its source says: layers, the state of the nodes, GPUs that are not those of
// the layout, memory by nvidia-smi.
TEST(Published, ARowOfBloomBecomesAJobUnderDeepspeed) {
  const auto cases =
      cases_of("bloom176b_prequel_a100_grid.csv",
               "section,dtype,size,hidden,layers,heads,seq,vocab,gpus,zero_stage,dp,tp,pp,mbs,gbs,mem_gb,sec_per_iter,"
               "tflops,notes,"
               "confidence\n"
               "Grid,fp16(implied),194B,14400,(varies; hidden "
               "14400),96?,2048,250880,384,1,8,8,6,2,2048,45,172.36,98.43,02-20,s\n"
               "Rebalancing "
               "layers,\"bf16(BF16Optimizer,fp32)\",176B,14336,70,112,2048,250880,192,1,4,4,12,2,2048,,100,1,02-28,s\n"
               "Grid,fp16,187B,13824,80,64,2048,250880,320,0,8,8,10,4,2048,OOM,147.04,135.92,02-21,s\n");
  ASSERT_EQ(cases.size(), 3U);
  const Recipe &first = cases[0].job.recipe, &second = cases[1].job.recipe;
  EXPECT_EQ(cases[0].job.model.layers, 78) << "thirteen on each of six ranks come nearest to 194 billion";
  EXPECT_EQ(cases[0].job.model.heads, 64) << "the source says so of what the table guesses";
  EXPECT_EQ(first.parallel.framework, ParallelFramework::deepspeed);
  EXPECT_EQ(first.accumulation, 128);
  EXPECT_TRUE(first.launch_blocking);
  EXPECT_TRUE(first.parallel.distributed_optimizer);
  EXPECT_DOUBLE_EQ(cases[0].device_bytes, 45000.0 * (1 << 20));
  EXPECT_FALSE(second.launch_blocking);
  EXPECT_TRUE(second.parallel.embedding_in_split && second.parallel.loss_in_split);
  EXPECT_EQ(second.parallel.main_gradients, MainGradients::fp32);
  EXPECT_EQ(second.precision, Precision::bf16);
  EXPECT_NE(cases[1].gpu, cases[0].gpu);
  EXPECT_EQ(cases[2].ran, false);
  EXPECT_FALSE(cases[2].job.recipe.parallel.distributed_optimizer);
  EXPECT_NE(cases[2].why_not.find("TP x PP x DP"), std::string::npos);
}

TEST(Published, DenseRowsOfMegatronBridgeOnH100AreJobs) {
  const auto cases = cases_of("megatron_bridge_perf_all.csv",
                              "container,task,model,system,gpus,precision,gbs,mbs,seq,tp,pp,cp,vp,tokens_per_s_per_gpu\n"
                              "1,Pre-Training,DeepSeekV3,DGX-H100,256,FP8,4096,1,4096,1,2,1,n/a,3454 (2835)\n"
                              "1,Pre-Training,LLAMA3_70B,DGX-H100,64,FP8,256,1,8192,4,8,1,5,1633\n"
                              "1,LoRA,LLAMA3_70B,DGX-H100,8,FP8,32,1,4096,2,4,1,20,2643\n"
                              "1,Pre-Training,LLAMA3_70B,DGX-GB200,64,NVFP4,256,1,8192,2,4,1,5,4864\n"
                              "1,Pre-Training,LLAMA3_70B,DGX-H100,60,FP8,256,1,8192,4,8,1,5,1633\n");
  ASSERT_EQ(cases.size(), 5U);
  const char* const reasons[] = {"experts", "", "", "no machine file", "TP x PP x CP x DP"};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NE(cases[i].why_not.find(reasons[i]), std::string::npos) << cases[i].why_not;
    EXPECT_EQ(cases[i].why_not.empty(), i == 1 || i == 2) << cases[i].why_not;
  }
  const Recipe &whole = cases[1].job.recipe, &lora = cases[2].job.recipe;
  EXPECT_NEAR(cases[1].step_seconds, 20.07, 0.01);
  EXPECT_EQ(whole.data_parallel, 2U);
  EXPECT_EQ(whole.accumulation, 128);
  EXPECT_EQ(whole.precision, Precision::fp8_transformer_engine);
  EXPECT_TRUE(whole.parallel.tp_comm_overlap && whole.parallel.distributed_optimizer && whole.fp8_parameters);
  EXPECT_EQ(lora.lora_targets, LoraTargets::query_key_value);
  EXPECT_EQ(lora.parallel.interleave, 20);
  EXPECT_FALSE(lora.fp8_weight_cache || lora.parallel.distributed_optimizer);
}

TEST(Published, AFolderWithoutAKnownTableIsRefused) {
  const std::string error = error_of("holidays.csv", "day\n1\n");
  EXPECT_NE(error.find("none of the tables that are known"), std::string::npos) << error;
  EXPECT_NE(error.find(kVtrain), std::string::npos) << error;
}

TEST(Published, StepsOfAnAblationAddUp) {
  const auto cases = cases_of(kTorchtune,
                              "step,technique,peak_mem_active_gib,tokens_per_s,confidence\n"
                              "0,baseline (unpacked),20,2000,stored\n"
                              "1,+packed dataset,60,8192,stored\n"
                              "2,+compile,50,4096,stored\n"
                              "3,+chunked cross entropy,50,4096,stored\n"
                              "4,+activation checkpointing,50,4096,stored\n"
                              "5,+telepathy,50,4096,stored\n");
  ASSERT_EQ(cases.size(), 6U);
  EXPECT_NE(cases[0].why_not, "") << "its lengths are not stated";
  EXPECT_DOUBLE_EQ(cases[1].step_seconds, 1) << "2 x 4096 tokens";
  EXPECT_DOUBLE_EQ(cases[1].peak_bytes, 60.0 * (1 << 30));
  EXPECT_EQ(cases[1].job.recipe.execution, ExecutionMode::eager);
  EXPECT_EQ(cases[2].job.recipe.execution, ExecutionMode::compiled);
  EXPECT_EQ(cases[2].job.recipe.loss_chunks, 1);
  EXPECT_GT(cases[3].job.recipe.loss_chunks, 1);
  EXPECT_EQ(cases[3].job.recipe.execution, ExecutionMode::compiled) << "what was added stays";
  EXPECT_EQ(cases[4].job.recipe.checkpoint, ActivationCheckpoint::full);
  EXPECT_NE(cases[5].why_not.find("not known"), std::string::npos);
}

TEST(Published, MistakesInATableAreSentencesWithTheirPlace) {
  const std::string columns = "step,technique,peak_mem_active_gib,tokens_per_s,confidence\n";
  EXPECT_NE(error_of(kTorchtune, columns + "1,+packed,many,1,stored\n").find(".csv:2: column \"peak_mem_active_gib\""),
            std::string::npos);
  EXPECT_NE(error_of(kTorchtune, columns + "1,+packed,1\n").find(":2: found 3 cells, expected 5"), std::string::npos);
  EXPECT_NE(error_of(kTorchtune, "a,b\n1,2\n").find("found no column"), std::string::npos);
  EXPECT_NE(error_of(kTorchtune, "# nothing\n").find("found no table"), std::string::npos);
  EXPECT_NE(error_of(kTorchtune, columns + "1,+packed,-5,1,stored\n").find("expected a number above 0"),
            std::string::npos);
  EXPECT_THROW(published_cases("/no/such/folder"), InputError);
}

// Numbers that no job has are said to be wrong; they are neither rounded away nor simulated.
TEST(Published, RowsWhoseNumbersDoNotGoTogetherAreNotPredicted) {
  const std::string columns = "gpus,global_batch,microbatch,hidden,heads,layers,seq,tp,dp,pp,iter_time_ms,confidence\n";
  const std::pair<const char*, const char*> rows[] = {
      {"4,15,2,1024,16,24,1024,1,4,1,100,x", "whole microbatches"},
      {"4,4,8,1024,16,24,1024,1,4,1,100,x", "whole microbatches"},
      {"8,16,1099511627776,1024,16,24,1024,1,8,1,100,x", "whole microbatches"},
      {"8,16,1,1024,16,24,1024,1,16777216,1,100,x", "too many"},
      {"8,16,1,1024,16,24,1024,1,4294967297,1,100,x", "too many"},
      {"8,64,1,1024,16,24,1024,1,4,1,100,x", "TP x PP x DP"},
      {"4,16,2,1000,16,24,1024,1,4,1,100,x", "does not divide"},
      {"4,16,2,1024,16,1000000000,1024,1,4,1,100,x", "too many"},
      {"1,1000000000,1,1024,16,24,1024,1,1,1,100,x", "too"},
      {"1,4,1,1000000000000,1,24,1024,1,1,1,100,x", "too many"}};
  for (const auto& [row, reason] : rows) {
    const auto cases = cases_of(kVtrain, columns + row + "\n");
    ASSERT_EQ(cases.size(), 1U);
    const std::string why_not = predict(cases[0]).at(0).why_not;
    EXPECT_NE(why_not.find(reason), std::string::npos) << row << ": " << why_not;
  }
  const auto native =
      cases_of("llmc_step_times.csv",
               "model,layers,hidden,heads,seq,microbatch,total_batch_tokens,hardware,step_time_s,usable,confidence\n"
               "G,12,768,12,1024,64,524289,8xA100-80GB SXM,0.3,yes,x\n"
               "G,12,768,12,16777216,1099511627776,524288,8xA100-80GB SXM,0.3,yes,x\n"
               "G,12,768,12,1024,32,524288,8xA100-80GB SXM,0.3,yes,x\n");
  ASSERT_EQ(native.size(), 3U);
  EXPECT_NE(native[0].why_not.find("whole microbatches"), std::string::npos);
  EXPECT_NE(native[1].why_not.find("whole microbatches"), std::string::npos);
  EXPECT_EQ(native[2].why_not, "");
  EXPECT_EQ(native[2].job.recipe.accumulation, 2);
  EXPECT_NE(error_of(kVtrain, columns + "1,4,1,1024,16,24,1024,1,1,1,1e15,x\n").find("expected at most 1e+06 s"),
            std::string::npos);
}

PublishedResult result(double measured, double predicted, const std::string& why_not = "") {
  PublishedResult r;
  r.table = "t";
  r.metric = "step time";
  r.unit = "s";
  r.measured = measured;
  r.predicted = predicted;
  r.why_not = why_not;
  return r;
}

TEST(Published, MedianAndNinetiethPercentileAreOfErrorsWithoutSign) {
  std::vector<PublishedResult> results;
  for (int i = 1; i <= 10; ++i) results.push_back(result(100, i % 2 == 0 ? 100 + i : 100 - i));
  results.push_back(result(100, 0, "not implemented"));
  const auto errors = published_errors(results);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].rows, 10U);
  EXPECT_EQ(errors[0].not_predicted, 1U);
  EXPECT_NEAR(errors[0].median, 0.055, 1e-12);
  EXPECT_NEAR(errors[0].p90, 0.09, 1e-12) << "nearest rank: the ninth of ten";
}

TEST(Published, AnAblationComparesEachStepWithTheLastOneThatWasPredicted) {
  std::vector<PublishedResult> results{result(2, 4), result(9, 0, "not implemented"), result(1, 3), result(2, 1)};
  for (PublishedResult& r : results) r.table = "torchtune_llama32_3b_ablation_a100";
  const auto steps = ablation(results);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_DOUBLE_EQ(steps[0].measured, -0.5);
  EXPECT_DOUBLE_EQ(steps[0].predicted, -0.25);
  EXPECT_TRUE(steps[0].same_direction());
  EXPECT_FALSE(steps[1].same_direction()) << "measured longer, predicted shorter";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
