// Do training frameworks hold what the plan chose, once they have read what `memwall emit` writes? Where their packages
// are installed, in the versions that memwall writes for (python3, or the program that MEMWALL_PYTHON names); no GPU is
// needed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class FrameworkSettings : public testing::Test {
 protected:
  static std::string python() {
    const char* named = std::getenv("MEMWALL_PYTHON");
    return named != nullptr ? named : "python3";
  }
  void SetUp() override {
    if (run_command(python() + " --version", folder_.path()).code != 0) GTEST_SKIP() << "no python3 here";
  }

  // What the framework holds, as lines "name value"; "" where its package is absent, with the reason in `absent_`.
  std::string held(const std::string& framework, const std::string& policies, const std::string& file) {
    const CommandOutcome planned = run_memwall(
        folder_, "run '" MEMWALL_SOURCE "/traces/samples/captures/gpt2_124m.mwc.gz' --machine h100-sxm-80gb " +
                     policies + " --plan-out step.plan");
    EXPECT_EQ(planned.code, 0) << planned.err;
    const CommandOutcome emitted = run_memwall(folder_, fmt::format("emit step.plan --for {} -o {}", framework, file));
    EXPECT_EQ(emitted.code, 0) << emitted.err;
    const CommandOutcome parsed = run_command(
        fmt::format("{} " MEMWALL_SOURCE "/tests/frameworks/parse_emitted.py {} {}", python(), framework, file),
        folder_.path());
    constexpr int kAbsent = 77;
    if (parsed.code == kAbsent) {
      absent_ = parsed.out;
      return "";
    }
    EXPECT_EQ(parsed.code, 0) << parsed.out << parsed.err;
    return "\n" + parsed.out;
  }

  static void expect(const std::string& held, const std::vector<std::string>& lines) {
    for (const std::string& line : lines)
      EXPECT_NE(held.find("\n" + line + "\n"), std::string::npos) << "expected: " << line << "\nheld:" << held;
  }

  static constexpr const char* kShard = "--policy zero:stage=3,ranks=8 ";
  const ScratchFolder folder_;
  std::string absent_;
};

TEST_F(FrameworkSettings, DeepspeedHoldsStageBucketsAndOffload) {
  const std::string config = held(
      "deepspeed", "--policy zero:stage=2,ranks=8,bucket_bytes=8MB,overlap=0 --policy offload:what=optimizer,to=host",
      "a.json");
  if (!absent_.empty()) GTEST_SKIP() << absent_;
  expect(config, {"micro_batch 8", "accumulation 1", "stage 2", "overlap_comm False", "reduce_bucket_size 2000000",
                  "allgather_bucket_size 2000000", "offload_optimizer cpu", "offload_optimizer.pin_memory True",
                  "offload_param None", "autocast torch.bfloat16", "bf16 False"});
}

TEST_F(FrameworkSettings, TransformersHoldsFsdpOfFullySplitSteps) {
  const std::string args = held("transformers", std::string(kShard) + "--policy checkpoint:mode=full", "a.json");
  if (!absent_.empty()) GTEST_SKIP() << absent_;
  expect(args, {"micro_batch 8", "precision bf16", "checkpointing False", "fsdp.fsdp_version 2",
                "fsdp.reshard_after_forward True", "fsdp.activation_checkpointing True"});
}

// Autocast is DeepSpeed's; bf16=true beside it would turn on training in bf16.
TEST_F(FrameworkSettings, TransformersHandsDeepspeedWhatOnlyThatCan) {
  const std::string args =
      held("transformers",
           std::string(kShard) + "--policy offload:what=optimizer,to=host --policy checkpoint:mode=full", "a.json");
  if (!absent_.empty()) GTEST_SKIP() << absent_;
  expect(args, {"checkpointing True", "checkpointing_kwargs {\"use_reentrant\": false}", "stage 3",
                "reduce_bucket_size 6553600", "prefetch_bucket_size 6553600", "max_reuse_distance 0",
                "param_persistence_threshold 0", "offload_optimizer cpu", "autocast torch.bfloat16", "bf16 False"});
}

TEST_F(FrameworkSettings, AccelerateHoldsFsdpOrDeepspeed) {
  const std::string fsdp = held("accelerate", std::string(kShard) + "--policy checkpoint:mode=full", "a.yaml");
  if (!absent_.empty()) GTEST_SKIP() << absent_;
  expect(fsdp,
         {"distributed FSDP", "processes 8", "precision bf16", "fsdp_version 2", "reshard_after_forward True",
          "activation_checkpointing True", "activation_checkpointing_offload False", "cpu_offload OffloadPolicy"});
  const std::string deepspeed = held("accelerate", "--policy zero:stage=1,ranks=4", "b.yaml");
  if (!absent_.empty()) GTEST_SKIP() << absent_;
  expect(deepspeed, {"distributed DEEPSPEED", "processes 4", "bf16 False", "stage 1", "offload_optimizer none"});
}

TEST_F(FrameworkSettings, TorchtitanHoldsEveryNthBlock) {
  const std::string config =
      held("torchtitan-0.2.2", std::string(kShard) + "--policy checkpoint:layers=6,spread=even", "a.toml");
  if (!absent_.empty()) GTEST_SKIP() << absent_;
  expect(config, {"mode selective", "option 2", "early_stop True", "batch 8", "tokens 1024", "dtype float32",
                  "mixed bfloat16", "cpu_offload False", "replicas 1", "shards 8", "reshard always"});
}

TEST_F(FrameworkSettings, Fsdp2SplitsASmallModelAsThePlanSays) {
  const std::string model =
      held("fsdp2",
           std::string(kShard) +
               "--policy offload:what=optimizer+gradients+parameters,to=host --policy checkpoint:mode=full",
           "a.py");
  if (!absent_.empty()) GTEST_SKIP() << absent_;
  expect(model, {"applied step.plan", "model FSDPSequential", "param_dtype torch.bfloat16",
                 "reduce_dtype torch.float32", "reshard True", "offload CPUOffloadPolicy"});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
