// What programs around a network hold beside it: LoRA in fp32, logits that a model returns, Adam's lists in
// PyTorch 2.0, Liger's kernels, 8-bit states in pages. Bytes and ops against closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "models/workload/generate/operators/operators_liger.h"
#include "sim/error.h"
#include "tests/support/live_bytes.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::int64_t kLayers = 2, kTokens = 2 * 128, kWords = 3000, kWidth = 256, kInner = 512;

Trace step_of(const std::vector<std::string>& settings) {
  TrainingJob job = load_training_job("llama2-7b");
  set_all(job, {"layers=2", "width=256", "heads=4", "key_value_heads=4", "inner=512", "vocabulary=3000", "longest=128",
                "sequence=128", "batch=2", "precision=bf16"});
  set_all(job, settings);
  return generate_step(job.model, job.recipe);
}

std::int64_t count(const Trace& t, std::string_view name) {
  return std::count_if(t.ops.begin(), t.ops.end(), [&](const Op& op) { return t.strings[op.name] == name; });
}

Bytes held(const Trace& t, StorageKind kind) {
  Bytes bytes = 0;
  for (const Storage& s : t.storages) bytes += s.preexisting && s.kind == kind ? s.bytes : 0;
  return bytes;
}

Bytes all_of(const LiveBytes& live) {
  Bytes bytes = 0;
  for (const auto& one : live) bytes += one;
  return bytes;
}

// The most that lives at ops of a phase.
Bytes peak(const Trace& t, Phase phase) {
  const std::vector<LiveBytes> live = live_bytes(t);
  Bytes most = 0;
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (t.ops[id].phase == phase) most = std::max(most, all_of(live[id]));
  return most;
}

// Six pairs per layer: 8 (256 + 256) of three, 8 (256 + 512) of three. Parameters, gradients and two moments.
TEST(LoraInFp32, PairsTakeTwiceTheBytes) {
  const Trace narrow = step_of({"lora_rank=8"}), wide = step_of({"lora_rank=8", "lora_in_fp32=true"});
  constexpr Bytes kPairs = kLayers * (3 * 8 * 512 + 3 * 8 * 768);
  EXPECT_EQ(held(wide, StorageKind::parameter) - held(narrow, StorageKind::parameter), 2 * kPairs);
  EXPECT_EQ(held(wide, StorageKind::optimizer_state) - held(narrow, StorageKind::optimizer_state), 4 * kPairs);
}

// Products stay 16-bit, as autocast has them.
TEST(LoraInFp32, ProductsAreAutocasts) {
  const Trace t = step_of({"lora_rank=8", "lora_in_fp32=true", "lora_dropout=0.1"});
  for (const Op& op : t.ops) {
    if (op.operator_class == OperatorClass::gemm) {
      EXPECT_EQ(op.data_type, DataType::bf16);
    }
    if (t.strings[op.name] == "aten::native_dropout") {
      EXPECT_EQ(op.data_type, DataType::fp32);
    }
  }
  EXPECT_THROW(step_of({"lora_in_fp32=true"}), UsageError);
  EXPECT_THROW(step_of({"lora_rank=8", "lora_in_fp32=true", "execution=compiled"}), UsageError);
}

// One list of the trained parameters' size more, bf16, at the end of the update.
TEST(ForeachWithCopies, DenominatorsAreAListOfTheirOwn) {
  const Trace now = step_of({}), then = step_of({"optimizer_kernels=foreach_with_copies"});
  EXPECT_EQ(peak(then, Phase::optimizer) - peak(now, Phase::optimizer), held(now, StorageKind::parameter));
}

// Groups by type: roots and denominators of one live until those of the next are there.
TEST(ForeachWithCopies, AGroupsListsLiveUntilTheNextOnesAreMade) {
  const std::vector<std::string> mixed{"lora_rank=8", "lora_in_fp32=true", "trained_embeddings=true"};
  std::vector<std::string> copies = mixed;
  copies.push_back("optimizer_kernels=foreach_with_copies");
  constexpr Bytes kPairs = kLayers * (3 * 8 * 512 + 3 * 8 * 768), kEmbeddings = 2 * kWords * kWidth;
  // Roots of the one type (the other's roots are just replaced): 2 + 4 bytes; with copies also both denominators.
  EXPECT_EQ(peak(step_of(copies), Phase::optimizer) - peak(step_of(mixed), Phase::optimizer), 2 * kEmbeddings);
  EXPECT_GT(2 * kEmbeddings, 4 * kPairs) << "else the last group's denominators would decide";
}

// In fp32 of all tokens; within forward the same tensor that the loss reads.
TEST(ReturnedLogits, LiveUntilForwardOrBackwardIsOver) {
  const Bytes logits = 4 * kTokens * kWords;
  const Bytes none = peak(step_of({}), Phase::backward);
  EXPECT_EQ(peak(step_of({"returned_logits=forward"}), Phase::backward), none);
  EXPECT_EQ(peak(step_of({"returned_logits=backward"}), Phase::backward) - none, logits);
}

// Of the last token of each sequence there is no loss.
TEST(ShiftedLogits, AreACopyWhereThereAreSeveralSequences) {
  const Trace two = step_of({"shifted_logits=true"}), one = step_of({"shifted_logits=true", "batch=1"});
  const auto largest = [](const Trace& t, std::string_view label) {
    Bytes most = 0;
    for (const Storage& s : t.storages)
      if (t.strings[s.label] == label) most = std::max(most, s.bytes);
    return most;
  };
  EXPECT_EQ(largest(two, "aten::clone"), 4 * (kTokens - 2) * kWords);
  EXPECT_LT(largest(one, "aten::clone"), 4 * (kTokens / 2 - 1) * kWords);
  EXPECT_EQ(largest(two, "aten::_log_softmax"), 4 * (kTokens - 2) * kWords);
}

// Gradients of gate and up are written over them, queries and keys are turned in place, a normalization is one kernel.
TEST(LigerKernels, AreFewerAndMakeFewerTensors) {
  const Trace plain = step_of({"normalization=rms_norm_in_parts"});
  const Trace liger = step_of({"normalization=rms_norm_in_parts", "liger_kernels=true"});
  EXPECT_EQ(count(liger, "liger::rms_norm"), 2 * kLayers + 1);
  EXPECT_EQ(count(liger, "liger::rms_norm_backward"), 2 * kLayers + 1);
  EXPECT_EQ(count(liger, "liger::rope"), kLayers);
  EXPECT_EQ(count(liger, "liger::swiglu_backward"), kLayers);
  EXPECT_LT(peak(liger, Phase::backward), peak(plain, Phase::backward));
  // What a layer keeps: x, q, k, v and attention's output, y of both normalizations, x in the middle: 8 width; gate, up
  // and their product; of the statistics one fp32 per row and normalization, one per head of attention.
  const auto kept_of_a_layer = [](const std::vector<std::string>& more) {
    std::vector<std::string> settings{"normalization=rms_norm_in_parts", "liger_kernels=true"};
    settings.insert(settings.end(), more.begin(), more.end());
    const Trace t = step_of(settings);
    const std::vector<LiveBytes> live = live_bytes(t);
    for (OpId id = 0; id < t.ops.size(); ++id)
      if (t.ops[id].kind == OpKind::mark && t.ops[id].phase == Phase::backward)
        return of(live[id], StorageKind::activation);
    return Bytes{0};
  };
  constexpr Bytes kScalars = 8 + 8;  // attention's seed and what is unused: of two and of one int64
  EXPECT_EQ(kept_of_a_layer({"layers=3"}) - kept_of_a_layer({}),
            kTokens * (8 * kWidth + 3 * kInner) * 2 + kTokens * 2 * 4 + kTokens * 4 * 4 + kScalars + 8);
  EXPECT_THROW(step_of({"liger_kernels=true", "execution=compiled"}), UsageError);
}

TEST(SynchronizingAttention, TheHostWaitsOncePerLayerAndAgainInItsSecondRun) {
  EXPECT_EQ(count(step_of({}), "aten::_local_scalar_dense"), 0);
  EXPECT_EQ(count(step_of({"synchronizing_attention=true"}), "aten::_local_scalar_dense"), kLayers);
  EXPECT_EQ(count(step_of({"synchronizing_attention=true", "checkpoint=full"}), "aten::_local_scalar_dense"),
            2 * kLayers);
}

// Moments of 100,000 elements and more go to the host's memory, their scales stay; each goes in and out once a step.
TEST(PagedOptimizer, MomentsLeaveAndScalesStay) {
  const Trace there = step_of({"optimizer=adamw_8bit"}),
              paged = step_of({"optimizer=adamw_8bit", "paged_optimizer=true"});
  const auto states_in = [](const Trace& t, std::string_view place) {
    Bytes bytes = 0;
    for (const Storage& s : t.storages)
      if (s.kind == StorageKind::optimizer_state && t.places[s.place] == place) bytes += s.bytes;
    return bytes;
  };
  // Words, output layer, gate, up and down; matrices of 256 x 256 are smaller than 100,000.
  constexpr Bytes kPaged = 2 * kWords * kWidth + kLayers * 3 * kWidth * kInner;
  EXPECT_EQ(states_in(paged, "host"), 2 * kPaged);
  EXPECT_EQ(states_in(there, "hbm") - states_in(paged, "hbm"), 2 * kPaged);
  Bytes in = 0, out = 0;
  for (const Op& op : paged.ops) {
    if (op.kind != OpKind::copy) continue;
    (paged.places[op.to] == "hbm" ? in : out) += op.bytes;
  }
  EXPECT_EQ(in, 2 * kPaged);
  EXPECT_EQ(out, 2 * kPaged);
  EXPECT_THROW(step_of({"paged_optimizer=true"}), UsageError);
}

// Six bytes more for each element of the word embedding, its scales less.
TEST(PagedOptimizer, EmbeddingsMayHaveStatesInFp32) {
  const Bytes narrow = held(step_of({"optimizer=adamw_8bit"}), StorageKind::optimizer_state);
  const Bytes wide =
      held(step_of({"optimizer=adamw_8bit", "embedding_states_in_fp32=true"}), StorageKind::optimizer_state);
  constexpr Bytes kElements = kWords * kWidth;
  EXPECT_EQ(wide - narrow, 2 * 3 * kElements - 2 * 4 * kElements / 256);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
