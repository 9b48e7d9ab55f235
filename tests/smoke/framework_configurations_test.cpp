// Does what a framework's configuration becomes run: are its policies ones that memwall has, with parameters that these
// take, on a generated step and on a capture? And is what it became said?
#include <gtest/gtest.h>

#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Sample {
  const char *option, *file, *text, *policy;
};

constexpr Sample kSamples[] = {
    {"--deepspeed", "one.json",
     R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2, "bf16": {"enabled": true},
         "zero_optimization": {"stage": 2, "overlap_comm": true, "reduce_bucket_size": 2e8,
                               "offload_optimizer": {"device": "cpu", "pin_memory": true}}})",
     "deepspeed:stage=2,ranks=8"},
    {"--deepspeed", "three.json",
     R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "aio": {"queue_depth": 32},
         "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 5e7, "stage3_max_live_parameters": 1e9,
                               "stage3_max_reuse_distance": 1e9, "stage3_param_persistence_threshold": 1e5,
                               "sub_group_size": 1e9, "contiguous_gradients": true, "round_robin_gradients": false,
                               "zero_hpz_partition_size": 1, "zero_quantized_weights": false}})",
     "deepspeed:stage=3,ranks=8"},
    {"--deepspeed", "uncopied.json",
     R"({"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2, "bf16": {"enabled": true},
         "zero_optimization": {"stage": 2, "contiguous_gradients": false, "offload_optimizer": {"device": "cpu"}}})",
     "deepspeed:stage=2,ranks=8,contiguous_gradients=0"},
    {"--torchtitan", "shard.toml", "[training]\nlocal_batch_size = 1\nseq_len = 256\n", "fsdp:version=2,ranks=8"},
    {"--torchtitan", "ddp.toml",
     "[training]\nlocal_batch_size = 1\nseq_len = 256\n[parallelism]\ndata_parallel_replicate_degree = 8\n"
     "data_parallel_shard_degree = 1\n",
     "ddp:ranks=8"},
    {"--accelerate", "one.yaml",
     "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config:\n  fsdp_sharding_strategy: "
     "FULL_SHARD\n"
     "  fsdp_backward_prefetch_policy: BACKWARD_PRE\n  fsdp_forward_prefetch: true\n",
     "fsdp:version=1,ranks=8"},
    {"--accelerate", "ddp.yaml", "distributed_type: MULTI_GPU\nmixed_precision: bf16\nnum_processes: 8\n",
     "ddp:ranks=8"},
    {"--transformers", "args.json",
     R"({"per_device_train_batch_size": 1, "bf16": true, "fsdp": true, "gradient_checkpointing": true,
         "fsdp_config": {"version": 2, "reshard_after_forward": true}})",
     "fsdp:version=2,ranks=8"}};

TEST(FrameworkConfigurations, BecomePoliciesThatRun) {
  const ScratchFolder folder;
  for (const Sample& sample : kSamples) {
    write_content(folder / sample.file, sample.text);
    for (const std::string& step : {std::string("gpt2-124m:layers=2,sequence=256"),
                                    "'" + std::string(MEMWALL_SOURCE) + "/traces/samples/gpt_124m.mwt'"}) {
      const CommandOutcome outcome =
          run_memwall(folder, "run " + step + " --machine hgx-h100 --gpus 8 " + sample.option + " " + sample.file);
      EXPECT_EQ(outcome.code, 0) << sample.file << " on " << step << ": " << outcome.err;
      EXPECT_NE(outcome.err.find(sample.policy), std::string::npos) << outcome.err;
    }
  }
}

TEST(FrameworkConfigurations, AreRefusedInASentence) {
  const ScratchFolder folder;
  write_content(folder / "a.json", R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})");
  const auto refuses = [&](const std::string& arguments, int code, const char* what) {
    const CommandOutcome outcome = run_memwall(folder, arguments);
    EXPECT_EQ(outcome.code, code) << arguments;
    EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
  };
  refuses("run gpt2-124m --deepspeed a.json", 6, "a.json: DeepSpeed refuses it: bfloat16 and fp16");
  refuses("run gpt2-124m --deepspeed b.json", 6, "b.json: cannot be read");
  refuses("run gpt2-124m --deepspeed a.json --torchtitan a.json", 2, "Two configurations");
  refuses("run gpt2-124m --gpus 8", 2, "--gpus is of a framework's configuration");
  write_content(folder / "c.json", "{}");
  refuses("run --deepspeed c.json --gpus 1", 2, "give the step");
  refuses("plan --deepspeed c.json --gpus 1", 2, "give the step");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
