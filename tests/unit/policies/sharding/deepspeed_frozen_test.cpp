// Frozen parameters under DeepSpeed: split and gathered as all are, but in no optimizer's list.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "tests/support/deepspeed_checks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using namespace deepspeed_checks;

// Two layers of a Llama with LoRA of rank 8, or without.
Trace llama(const std::vector<std::string>& settings) {
  TrainingJob job = load_training_job("llama2-7b");
  set_all(job, {"layers=2", "width=256", "heads=4", "key_value_heads=4", "inner=512", "vocabulary=1000", "longest=64",
                "sequence=64", "precision=bf16", "master_parameters=true"});
  set_all(job, settings);
  Trace t = generate_step(job.model, job.recipe);
  t.knowledge.timing = true;
  for (Op& op : t.ops)
    if (op.kind == OpKind::kernel) op.duration = microseconds(1);
  return t;
}

// Of queries, values, attention's output and the MLP's three, in and out: 8 (256 + 256) and 8 (256 + 512) each.
constexpr Bytes kTrained = 2 * (3 * 8 * 512 + 3 * 8 * 768);

TEST(DeepSpeedFrozen, StagesOneAndTwoFlattenGradientsOfTrainedParametersAlone) {
  for (const int stage : {1, 2}) {
    const Trace t = rewritten(llama({"lora_rank=8"}), deepspeed(stage, 2, ",reduce_bucket_size=1000000"));
    expect_sound(t);
    EXPECT_EQ(labelled(t, "fp32_flat_gradients"), 4 * kTrained / 2) << stage;
    EXPECT_EQ(at_rest(t, StorageKind::optimizer_state), 12 * kTrained / 2) << stage;
  }
}

TEST(DeepSpeedFrozen, StageThreeSplitsAllParametersAndKeepsGradientsOfTrainedOnes) {
  const std::string settings = ",param_persistence_threshold=0,reduce_bucket_size=1000000";
  const Trace lora = rewritten(llama({"lora_rank=8"}), deepspeed(3, 2, settings));
  const Trace full = rewritten(llama({}), deepspeed(3, 2, settings));
  expect_sound(lora);
  EXPECT_EQ(labelled(lora, "gradient_partitions"), 2 * kTrained / 2);
  EXPECT_EQ(at_rest(lora, StorageKind::parameter) - at_rest(full, StorageKind::parameter), 2 * kTrained / 2);
}

// CUDA_DEVICE_MAX_CONNECTIONS=1: gathers wait for the compute that was submitted before them.
TEST(DeepSpeedFrozen, WithOneQueueGathersWaitForCompute) {
  const auto waits = [](const std::string& more) {
    const Trace t = rewritten(llama({"lora_rank=8"}), deepspeed(3, 2, kBare + more));
    expect_sound(t);
    std::size_t n = 0;
    for (const Op& op : t.ops) n += op.kind == OpKind::event_wait ? 1 : 0;
    return n;
  };
  EXPECT_GT(waits(",one_queue=1"), waits(""));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
