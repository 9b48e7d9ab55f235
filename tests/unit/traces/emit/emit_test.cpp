// Do the settings of each framework say what the plan chooses, in that framework's keys and units, and is what it
// cannot express said and refused?
#include "traces/emit/emit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "tests/support/planned_document.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Emission emitted(const PlanDocument& document, const std::string& framework, const std::string& dtype = "") {
  return emit(document, {framework, "step.plan", dtype});
}

bool says(const Emission& e, const std::string& decision, const std::string& reason, bool essential) {
  return std::any_of(e.left_out.begin(), e.left_out.end(), [&](const LeftOut& each) {
    return each.decision.find(decision) != std::string::npos && each.reason.find(reason) != std::string::npos &&
           each.essential == essential;
  });
}
bool notes(const Emission& e, const std::string& text) {
  return std::any_of(e.notes.begin(), e.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

TEST(EmitDeepspeed, WritesZeroInElementsOfTheGradient) {
  const PlanDocument plan = planned({zero(3), offload({"optimizer"})});
  const Emission e = emitted(plan, "deepspeed");
  EXPECT_TRUE(e.carries_out_the_plan());
  EXPECT_EQ(e.text, R"({
  "train_micro_batch_size_per_gpu": 8,
  "gradient_accumulation_steps": 1,
  "torch_autocast": {
    "enabled": true,
    "dtype": "bfloat16"
  },
  "zero_optimization": {
    "stage": 3,
    "overlap_comm": true,
    "reduce_bucket_size": 6553600,
    "allgather_bucket_size": 6553600,
    "stage3_prefetch_bucket_size": 6553600,
    "stage3_max_reuse_distance": 0,
    "stage3_param_persistence_threshold": 0,
    "offload_optimizer": {
      "device": "cpu",
      "pin_memory": true
    }
  }
}
)");
  EXPECT_TRUE(notes(e, "26214400 bytes of fp32 are 6553600 elements"));
}

// The unit is the type's: a gradient of two bytes makes twice the elements; bytes themselves would be wrong.
TEST(EmitDeepspeed, ABucketHasAsManyElementsAsItsTypeMakes) {
  const PlanDocument plan = planned({zero(2)});
  EXPECT_NE(emitted(plan, "deepspeed").text.find("\"reduce_bucket_size\": 6553600,"), std::string::npos);
  EXPECT_NE(emitted(plan, "deepspeed", "bf16").text.find("\"reduce_bucket_size\": 13107200,"), std::string::npos);
  PlanDocument unknown = plan;
  unknown.step.gradient_dtype.clear();
  const Emission e = emitted(unknown, "deepspeed");
  EXPECT_EQ(e.text.find("bucket_size"), std::string::npos) << "nothing is guessed";
  EXPECT_TRUE(says(e, "bucket_bytes=26214400", "--gradient-dtype", false));
}

TEST(EmitDeepspeed, SaysWhatNeedsAnotherStageOrDevice) {
  EXPECT_TRUE(says(emitted(planned({offload({"optimizer"})}), "deepspeed"), "offload", "ZeRO stage 1, 2 or 3", true));
  EXPECT_TRUE(says(emitted(planned({zero(2), offload({"parameters"})}), "deepspeed"), "offload", "stage 3", true));
  EXPECT_TRUE(
      says(emitted(planned({zero(3), offload({"optimizer"}, "peer")}), "deepspeed"), "offload", "not peer", true));
  const Emission e = emitted(blocks(12, {zero(1), checkpoint()}), "deepspeed");
  EXPECT_TRUE(says(e, "checkpoint", "deepspeed.checkpointing", true));
  EXPECT_NE(e.text.find("\"stage\": 1"), std::string::npos) << "the rest stands there for --partial";
}

TEST(EmitTorchtitan, WritesFullCheckpointingAndFsdp) {
  const Emission e = emitted(blocks(12, {zero(3), checkpoint()}), "torchtitan-0.2.2");
  EXPECT_TRUE(e.carries_out_the_plan());
  EXPECT_EQ(e.text, R"(# torchtitan 0.2.2; by memwall emit, of step.plan
[activation_checkpoint]
mode = "full"
early_stop = true

[training]
local_batch_size = 8
seq_len = 1024
dtype = "float32"
mixed_precision_param = "bfloat16"
enable_cpu_offload = false

[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = 8
fsdp_reshard_after_forward = "always"
)");
}

TEST(EmitTorchtitan, SelectiveIsEveryNthBlockAndNotGroups) {
  const Emission nth = emitted(nth_blocks(3, 4, {checkpoint({{"layers", 4}, {"spread", "even"}})}), "torchtitan-0.2.2");
  EXPECT_TRUE(nth.carries_out_the_plan());
  EXPECT_NE(nth.text.find("mode = \"selective\"\nselective_ac_option = \"3\"\n"), std::string::npos) << nth.text;
  const Emission groups = emitted(grouped_blocks(12, 3, {checkpoint({{"every", 3}})}), "torchtitan-0.2.2");
  EXPECT_TRUE(says(groups, "checkpoint:every=3", "one block of every 3, not 3 as one", true));
  EXPECT_NE(groups.text.find("mode = \"none\""), std::string::npos) << "its default would be every second block";
  const Emission first = emitted(blocks(5, {checkpoint({{"layers", 5}})}), "torchtitan-0.2.2");
  EXPECT_TRUE(says(first, "layers=5", "not the first ones", true));
}

TEST(EmitMegatron, WritesGroupsAsUniformAndFirstOnesAsBlock) {
  const Emission groups = emitted(grouped_blocks(12, 3, {zero(1), checkpoint({{"every", 3}})}), "megatron");
  EXPECT_TRUE(groups.carries_out_the_plan());
  EXPECT_EQ(groups.text,
            "--micro-batch-size 8\n--global-batch-size 64\n--recompute-granularity full\n--recompute-method uniform\n"
            "--recompute-num-layers 3\n--use-distributed-optimizer\n--overlap-grad-reduce\n--overlap-param-gather\n"
            "--ddp-bucket-size 6553600\n");
  const Emission first = emitted(blocks(5, {checkpoint({{"layers", 5}})}), "megatron");
  EXPECT_NE(first.text.find("--recompute-method block\n--recompute-num-layers 5\n"), std::string::npos);
  const Emission nth = emitted(nth_blocks(2, 6, {checkpoint({{"layers", 6}, {"spread", "even"}})}), "megatron");
  EXPECT_TRUE(says(nth, "spread=even", "not every N-th", true));
}

TEST(EmitTransformers, WritesFsdpOrDeepspeedAsThePlanSplits) {
  const Emission fsdp = emitted(blocks(12, {zero(3), checkpoint()}), "transformers");
  EXPECT_TRUE(fsdp.carries_out_the_plan());
  EXPECT_EQ(fsdp.text, R"({
  "per_device_train_batch_size": 8,
  "gradient_accumulation_steps": 1,
  "bf16": true,
  "fsdp": true,
  "fsdp_config": {
    "version": 2,
    "reshard_after_forward": true,
    "cpu_offload": false,
    "activation_checkpointing": true
  }
}
)");
  const Emission deepspeed = emitted(blocks(12, {zero(3), offload({"optimizer"}), checkpoint()}), "transformers");
  EXPECT_TRUE(deepspeed.carries_out_the_plan());
  EXPECT_NE(deepspeed.text.find("\"activation_checkpointing\": true"), std::string::npos);
  EXPECT_NE(deepspeed.text.find("\"offload_optimizer\": {"), std::string::npos);
}

// Its every_n_layers takes the first of every N blocks, the plan the last.
TEST(EmitTransformers, EveryNLayersIsAnotherChoiceOfBlocks) {
  const Emission e = emitted(nth_blocks(3, 4, {checkpoint({{"layers", 4}, {"spread", "even"}})}), "transformers");
  EXPECT_TRUE(says(e, "spread=even", "blocks 0, 3, ..., and the plan blocks 2, 5, ...", true));
  EXPECT_EQ(e.text.find("every_n_layers"), std::string::npos);
}

TEST(EmitAccelerate, WritesItsLauncherFile) {
  const Emission e = emitted(blocks(12, {zero(3), checkpoint()}), "accelerate");
  EXPECT_TRUE(e.carries_out_the_plan());
  EXPECT_EQ(e.text, R"(# accelerate 1.15; by memwall emit, of step.plan
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_processes: 8
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_reshard_after_forward: true
  fsdp_offload_params: false
  fsdp_activation_checkpointing: true
)");
  EXPECT_TRUE(says(emitted(blocks(12, {checkpoint()}), "accelerate"), "checkpoint", "with FSDP only", true));
}

TEST(EmitTorchtune, OffloadsActivationsOnlyWithCheckpointing) {
  PlanDocument plan = planned({zero(3), checkpoint(), offload({"activations"})});
  plan.step.compute_dtype = plan.step.gradient_dtype = "bf16";
  const Emission e = emitted(plan, "torchtune");
  EXPECT_TRUE(e.carries_out_the_plan());
  EXPECT_EQ(e.text, R"(# torchtune 0.7.0; by memwall emit, of step.plan
batch_size: 8
gradient_accumulation_steps: 1
dtype: bf16
enable_activation_checkpointing: true
enable_activation_offloading: true
data_parallel_shard_dim: 8
fsdp_reshard_after_forward: true
fsdp_cpu_offload: false
)");
  const Emission alone = emitted(planned({zero(3), offload({"activations"})}), "torchtune");
  EXPECT_TRUE(says(alone, "what=activations", "needs enable_activation_checkpointing", true));
}

TEST(EmitFsdp2, CallsTheApplierForModulesAndFullyShardForBlocks) {
  const Emission e =
      emitted(blocks(12, {zero(3), offload({"optimizer", "gradients", "parameters"}), checkpoint()}), "fsdp2");
  EXPECT_TRUE(e.carries_out_the_plan());
  EXPECT_EQ(e.text, R"(# torch 2.15; by memwall emit, of step.plan
import torch
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

import memwall_apply


def prepare(model, blocks):
    # blocks: model.get_submodule("h"). Before torch.compile, and before the optimizer is made.
    memwall_apply.apply(model, memwall_apply.load("step.plan"))
    settings = {
        "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32),
        "reshard_after_forward": True,
        "offload_policy": CPUOffloadPolicy(pin_memory=True),
    }
    for block in blocks:
        fully_shard(block, **settings)
    fully_shard(model, **settings)
    return model
)");
}

TEST(EmitFsdp2, RefusesPartsOfTheStateAndGroupsOfBlocks) {
  EXPECT_TRUE(says(emitted(planned({zero(3), offload({"optimizer"})}), "fsdp2"), "what=optimizer", "together", true));
  EXPECT_TRUE(says(emitted(planned({zero(1)}), "fsdp2"), "zero:stage=1", "splits parameters", true));
  const Emission groups = emitted(grouped_blocks(12, 3, {zero(3), checkpoint({{"every", 3}})}), "fsdp2");
  EXPECT_TRUE(says(groups, "every=3", "one fully_shard per block", true));
}

TEST(Emit, DoesNotTakeSomeBlocksForAll) {
  for (const std::string& framework : emitted_frameworks()) {
    if (framework == "fsdp2" || framework == "megatron") continue;  // they take the first ones as such
    EXPECT_FALSE(emitted(blocks(5, {zero(3), checkpoint({{"layers", 5}})}), framework).carries_out_the_plan())
        << framework;
    EXPECT_FALSE(emitted(blocks(11, {zero(3), checkpoint({{"last", "keep"}})}), framework).carries_out_the_plan())
        << framework;
  }
}

TEST(Emit, RefusesWhatNoFrameworkSays) {
  for (const std::string& framework : emitted_frameworks()) {
    PlanDocument planner = blocks(12, {{"capuchin", {}}});
    EXPECT_TRUE(says(emitted(planner, framework), "capuchin", "storage by storage", true)) << framework;
    PlanDocument old = blocks(12, {});
    EXPECT_TRUE(says(emitted(old, framework), "a test", "does not name its policies", true)) << framework;
    PlanDocument changed = blocks(12, {zero(3)});
    EXPECT_TRUE(says(emitted(changed, framework), "a test", "single storages", true)) << framework;
  }
}

TEST(Emit, SaysTheVersionOfEachFramework) {
  for (const auto& [framework, version] :
       std::vector<std::pair<std::string, std::string>>{{"deepspeed", "DeepSpeed 0.19.6"},
                                                        {"fsdp2", "torch 2.15"},
                                                        {"torchtitan-0.2.2", "torchtitan 0.2.2"},
                                                        {"megatron", "Megatron-LM 0.20.0"},
                                                        {"transformers", "transformers 5.23"},
                                                        {"accelerate", "accelerate 1.15"},
                                                        {"torchtune", "torchtune 0.7.0"}})
    EXPECT_TRUE(notes(emitted(planned({zero(3)}), framework), version)) << framework;
  EXPECT_EQ(emitted_frameworks().size(), 7u);
}

TEST(Emit, RefusesAnUnknownFrameworkWithTheList) {
  const auto refusal = [](const std::string& framework, const std::string& dtype) -> std::string {
    try {
      emitted(planned({zero(3)}), framework, dtype);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(
      refusal("torchtitan", ""),
      "--for \"torchtitan\": expected torchtitan-0.2.2, whose settings are a TOML file; other versions have other "
      "keys, and its main branch is set in Python.");
  EXPECT_EQ(
      refusal("deepsped", ""),
      "--for \"deepsped\" is unknown (nearest: \"deepspeed\"); expected one of deepspeed, fsdp2, torchtitan-0.2.2, "
      "megatron, transformers, accelerate, torchtune.");
  EXPECT_EQ(refusal("deepspeed", "bf8"), "--gradient-dtype \"bf8\" is unknown; expected bf16, fp16 or fp32.");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
