// Do the verbs say of jobs over many GPUs what a reader needs: the interval of each layout and why, where to search
// layouts, how a job is divided, and that a sweep has folded it?
#include <gtest/gtest.h>
#include <simdjson.h>

#include <string>

#include "tests/support/golden.h"
#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kSmall = "gpt3-175b:layers=4,width=4096,heads=32";

class LayoutVerbs : public ::testing::Test {
 protected:
  CommandOutcome memwall(const std::string& arguments) { return run_memwall(folder_, arguments); }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

  const ScratchFolder folder_;
};

TEST_F(LayoutVerbs, PlanSaysTheIntervalOfEachLayoutAndWhy) {
  const std::string ask = std::string("plan ") + kSmall + " --machine dgx-a100-80gb --gpus 8 --global-batch 16";
  const CommandOutcome text = memwall(ask);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(has(text.out, "(80 % interval ")) << text.out;
  const CommandOutcome json = memwall(ask + " --format json");
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  ASSERT_EQ(parser.parse(json.out).get(root), simdjson::SUCCESS) << json.out;
  std::size_t layouts = 0, reasons = 0;
  for (const simdjson::dom::element layout : root["layouts"].get_array()) {
    ++layouts;
    const double step = layout["step_time_s"], low = layout["step_time_low_s"], high = layout["step_time_high_s"];
    EXPECT_LT(low, step);
    EXPECT_GT(high, step);
  }
  for (const simdjson::dom::element reason : root["reasons"].get_array()) {
    ++reasons;
    EXPECT_TRUE(has(std::string(std::string_view(reason["reason"])), "is the fullest with"));
  }
  EXPECT_EQ(layouts, 10u);
  const std::string common(std::string_view(root["common_settings"].get_array().at(0)["settings"]));
  EXPECT_TRUE(has(common, "global_batch=16")) << common;
  for (const simdjson::dom::element reason : root["reasons"].get_array())
    EXPECT_FALSE(has(std::string(std::string_view(reason["reason"])), "global_batch=")) << "it is said once";
  EXPECT_EQ(reasons, layouts);
  EXPECT_GT(std::uint64_t(root["reserved"].get_array().at(0)["reserved_bytes"]), 0u);
}

TEST_F(LayoutVerbs, PlanTakesANetworksConfiguration) {
  write_content(folder_ / "config.json",
                R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5, "rope_theta": 500000, "tie_word_embeddings": false, "hidden_act": "silu"})");
  const std::string rest = ":sequence=2048 --machine hgx-h100 --gpus 4 --global-batch 8";
  const CommandOutcome of_file = memwall("plan config.json" + rest), of_name = memwall("plan llama3-8b" + rest);
  EXPECT_EQ(of_file.code, 0) << of_file.err;
  const auto sentence = [](const std::string& out) { return out.substr(0, out.find(" tokens/s")); };
  EXPECT_TRUE(has(sentence(of_file.out), "The shortest step takes ")) << of_file.out;
  EXPECT_EQ(sentence(of_file.out), sentence(of_name.out));
}

// Where no layout can be run, each reason is a line, with its number of layouts.
TEST_F(LayoutVerbs, PlanSaysWhyNothingCanBeRunLineByLine) {
  const std::string ask =
      std::string("plan ") + kSmall +
      ",pipeline=2,checkpoint=none,checkpoint_layers=2 --machine dgx-a100-80gb --gpus 12 --global-batch 12";
  const CommandOutcome text = memwall(ask);
  EXPECT_EQ(text.code, 3);
  EXPECT_TRUE(has(text.out, "GPUs can be run: all are refused")) << text.out;
  EXPECT_TRUE(has(text.out, "Why layouts are refused")) << text.out;
  EXPECT_TRUE(has(text.out, "\n  - ")) << text.out;
  const CommandOutcome json = memwall(ask + " --format json");
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  ASSERT_EQ(parser.parse(json.out).get(root), simdjson::SUCCESS) << json.out;
  EXPECT_GE(root["refused"].get_array().size(), 2u);
  const CommandOutcome line = memwall(ask + " --one-line");
  EXPECT_EQ(line.code, 3);
  EXPECT_EQ(line.out, "");
  EXPECT_TRUE(has(line.err, "can be run: all are refused")) << line.err;
}

// What is advised to a stage that does not fit, a pipeline takes.
TEST_F(LayoutVerbs, StagesAreAdvisedWhatTheyTake) {
  const CommandOutcome o = memwall(
      "run gpt3-175b:layers=8,width=4096,heads=32,tensor=2,pipeline=2,micro_batch=8,batch=512,attention=plain "
      "--machine dgx-a100-80gb --set gpu.hbm.capacity=25GB");
  EXPECT_EQ(o.code, 3) << o.out;
  EXPECT_TRUE(has(o.out, "Try checkpoint=full among the job's settings: activations take")) << o.out;
  EXPECT_FALSE(has(o.out, "--policy checkpoint")) << o.out;
}

// The recipe says how the model is divided.
TEST_F(LayoutVerbs, RunSaysHowTheModelIsDivided) {
  const CommandOutcome o =
      memwall(std::string("run ") + kSmall +
              ",tensor=2,pipeline=2,sequence_parallel=1,micro_batch=1,batch=4,checkpoint=selective,"
              "attention=plain --machine dgx-a100-80gb --format json");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_TRUE(has(o.out, "2 tensor- x 2 pipeline- x 1 data-parallel ranks, sequence parallelism")) << o.out;
  EXPECT_TRUE(has(o.out, "checkpoint=selective")) << o.out;
}

TEST_F(LayoutVerbs, WhatIsTooLargeForOneGpuIsToldWhereToSearch) {
  const CommandOutcome o = memwall("run llama3-70b:layers=40,sequence=512 --machine hgx-h100");
  EXPECT_EQ(o.code, 3);
  EXPECT_TRUE(has(o.err, "memwall plan llama3-70b:layers=40,sequence=512 --machine hgx-h100 --gpus 64")) << o.err;
  // Only the batch, which --global-batch says, is left out.
  const CommandOutcome tuned = memwall(
      "run llama3-70b:batch=2,layers=40,sequence=512,lora_rank=16 --machine hgx-h100 --set fabric.nvlink.max_ranks=8 "
      "--set gpu.hbm.capacity=60GB");
  EXPECT_TRUE(has(tuned.err,
                  "memwall plan llama3-70b:layers=40,sequence=512,lora_rank=16 --machine hgx-h100 --set "
                  "'fabric.nvlink.max_ranks=8' --set 'gpu.hbm.capacity=60GB' --gpus 64"))
      << tuned.err;
  for (const char* const other : {"run gpt2-124m:batch=4096,precision=amp_bf16 --machine a100-sxm-40gb",
                                  "run gpt2-124m:batch=4096 --machine a100-sxm-40gb --policy checkpoint:mode=full",
                                  "run gpt3-175b:tensor=2,layers=48,sequence=512 --machine dgx-a100-80gb"})
    EXPECT_FALSE(has(memwall(other).err, "memwall plan")) << other;
}

TEST_F(LayoutVerbs, SweepSaysThatItFolds) {
  const std::string ask =
      std::string("sweep ") + kSmall +
      ",micro_batch=1,batch=8 --machine dgx-a100-80gb --no-journal --over tensor=2,4 --over pipeline=1,2";
  const CommandOutcome folded = memwall(ask), written = memwall(ask + " --written-out");
  EXPECT_EQ(folded.code, 0) << folded.err;
  EXPECT_TRUE(has(folded.out, "4 points are jobs over many GPUs with folded passes")) << folded.out;
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_FALSE(has(written.out, "folded")) << written.out;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
