// Whatever happens to a framework's configuration: is it read, or refused with a sentence that names the file?
#include <gtest/gtest.h>

#include <random>

#include "models/workload/frameworks/framework_job.h"
#include "sim/error.h"
#include "tests/support/damage.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Sample {
  Framework framework;
  const char* name;
  const char* text;
};

constexpr Sample kSamples[] = {
    {Framework::deepspeed, "ds.json",
     R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}, "zero_optimization":
        {"stage": 3, "reduce_bucket_size": 2e8, "offload_optimizer": {"device": "cpu"}}, "aio": {"queue_depth": 32}})"},
    {Framework::torchtitan, "run.toml",
     "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n"
     "[parallelism]\ndata_parallel_shard_degree = -1\n[activation_checkpoint]\nmode = \"full\"\n"},
    {Framework::accelerate, "a.yaml",
     "distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config: &f\n  fsdp_version: 2\n"
     "  fsdp_offload_params: true\nmore: [1, two, {three: 4}]\nagain: *f\n"},
    {Framework::transformers, "args.json",
     R"({"per_device_train_batch_size": 4, "bf16": true, "fsdp": "full_shard", "fsdp_config": {"version": 1}})"}};

TEST(FrameworkConfigurationFuzz, DamagedFilesAreReadOrRefusedInASentence) {
  const ScratchFolder folder;
  std::mt19937_64 random(20261128);
  for (const Sample& sample : kSamples) {
    int refused = 0, read = 0;
    for (int round = 0; round < 2000; ++round) {
      write_content(folder / sample.name, damaged(sample.text, random));
      try {
        const FrameworkJob job = read_framework_job(sample.framework, folder / sample.name, {8});
        EXPECT_LE(job.policies.size(), 3u);
        ++read;
      } catch (const InputError& error) {
        EXPECT_NE(std::string(error.what()).find(sample.name), std::string::npos) << error.what();
        EXPECT_LT(std::string(error.what()).size(), 4000u);
        ++refused;
      } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find(sample.name), std::string::npos) << error.what();
        ++refused;
      }
    }
    EXPECT_GT(refused, 100) << sample.name;
    EXPECT_GT(read, 20) << sample.name;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
