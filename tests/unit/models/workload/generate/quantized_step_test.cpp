// Frozen weights in NF4, LoRA's dropout, Liger's loss, and compiled layers in fp8: bytes, kernels and FLOPs against
// closed forms.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "models/workload/generate/operators/operators_gptq.h"
#include "models/workload/generate/operators/operators_liger.h"
#include "models/workload/generate/operators/operators_nf4.h"
#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::int64_t kLayers = 2, kLinears = 7;

TrainingJob small_llama() {
  TrainingJob job = load_training_job("llama2-7b");
  set_all(job, {"layers=2", "width=256", "heads=4", "key_value_heads=4", "inner=512", "vocabulary=1000", "longest=128",
                "sequence=128", "batch=2", "precision=bf16", "loss_in_fp32=false"});
  return job;
}

Trace step_of(const TrainingJob& job, const std::vector<std::string>& settings) {
  TrainingJob changed = job;
  set_all(changed, settings);
  return generate_step(changed.model, changed.recipe);
}

std::int64_t count(const Trace& t, std::string_view name) {
  std::int64_t n = 0;
  for (const Op& op : t.ops) n += t.strings[op.name] == name ? 1 : 0;
  return n;
}

double product_flops(const Trace& t, DataType type) {
  double flops = 0;
  for (const Op& op : t.ops)
    if (op.operator_class == OperatorClass::gemm && (type == DataType::unknown || op.data_type == type))
      flops += op.flops;
  return flops;
}

TEST(WeightsInNf4, HalfAByteAndASixtyFourthPerElement) {
  constexpr std::int64_t kTables = 4 * (1 + 16 + 256);
  EXPECT_EQ(nf4_bytes(64), 32);
  EXPECT_EQ(nf4_bytes(65), 33);
  EXPECT_EQ(nf4_scale_bytes(65), 2 + 4 + kTables);
  EXPECT_EQ(nf4_scale_bytes(4096 * 4096), 4096 * 64 + 4 * 1024 + kTables);
}

// The scales are an attribute of the layer's weight: no parameter, and whole on every GPU.
TEST(WeightsInNf4, ScalesLieBesideTheParameters) {
  const auto held = [](const Trace& t, StorageKind kind) {
    Bytes bytes = 0;
    for (const Storage& s : t.storages) bytes += s.preexisting && s.kind == kind ? s.bytes : 0;
    return bytes;
  };
  const Trace lora = step_of(small_llama(), {"lora_rank=8"});
  const Trace quantized = step_of(small_llama(), {"lora_rank=8", "weights_in_nf4=true"});
  const std::int64_t square = 256 * 256, wide = 256 * 512;
  EXPECT_EQ(held(lora, StorageKind::workspace), 0);
  EXPECT_EQ(held(quantized, StorageKind::workspace),
            kLayers * (4 * nf4_scale_bytes(square) + 3 * nf4_scale_bytes(wide)));
  EXPECT_EQ(held(lora, StorageKind::parameter) - held(quantized, StorageKind::parameter),
            kLayers * (4 * square + 3 * wide) * 3 / 2);
}

TEST(WeightsInNf4, EachUseMakesThemSixteenBitAndProductsStayTheSame) {
  const Trace lora = step_of(small_llama(), {"lora_rank=8"});
  const Trace quantized = step_of(small_llama(), {"lora_rank=8", "weights_in_nf4=true"});
  EXPECT_EQ(product_flops(quantized, DataType::unknown), product_flops(lora, DataType::unknown));
  // In forward and backward, but the first layer's queries, keys and values, whose input needs no gradient.
  EXPECT_EQ(count(quantized, "bitsandbytes::dequantize_4bit"), 2 * kLayers * kLinears - 3);
  EXPECT_EQ(count(lora, "bitsandbytes::dequantize_4bit"), 0);
}

TEST(WeightsInNf4, WithoutLoraIsRefused) { EXPECT_THROW(step_of(small_llama(), {"weights_in_nf4=true"}), UsageError); }

TEST(WeightsInGptq, FourBitsAndAScaleAndAZeroPerGroup) {
  // 32 groups of 128 rows: per column 2 bytes of scale and half a byte of zero each; the group of each row.
  EXPECT_EQ(gptq_bytes(1024, 4096), 1024 * 4096 / 2 + 32 * 1024 * 2 + 32 * 1024 / 2 + 4 * 4096);
}

// Unpacked in forward alone: the 16-bit weight is kept for backward. Traffic per element: half a byte and four of the
// shift, five of the cast, two of the mask, two and the zeros of the difference, three and the scales of the product.
TEST(WeightsInGptq, EachForwardUnpacksThem) {
  const Trace lora = step_of(small_llama(), {"lora_rank=8", "precision=fp16"});
  const Trace quantized = step_of(small_llama(), {"lora_rank=8", "precision=fp16", "weights_in_gptq=true"});
  EXPECT_EQ(product_flops(quantized, DataType::unknown), product_flops(lora, DataType::unknown));
  EXPECT_EQ(count(quantized, "aten::bitwise_right_shift"), 2 * kLayers * kLinears) << "of zeros and of weights";
  EXPECT_EQ(count(lora, "aten::bitwise_right_shift"), 0);
  double shifted = 0, unpacked = 0;
  for (const Op& op : quantized.ops) {
    const std::string& name = quantized.strings[op.name];
    if (name == "aten::bitwise_right_shift") shifted += static_cast<double>(op.bytes) / 4.5;
    if (name == "aten::bitwise_and") unpacked += static_cast<double>(op.bytes) / 2;
  }
  EXPECT_EQ(shifted, unpacked) << "elements";
}

TEST(WeightsInGptq, WithoutLoraOrInOtherTypesTheyAreRefused) {
  EXPECT_THROW(step_of(small_llama(), {"weights_in_gptq=true", "precision=fp16"}), UsageError);
  EXPECT_THROW(step_of(small_llama(), {"lora_rank=8", "weights_in_gptq=true"}), UsageError);
  EXPECT_THROW(step_of(small_llama(), {"lora_rank=8", "weights_in_gptq=true", "weights_in_nf4=true"}), UsageError);
}

// PEFT's modules_to_save: a second copy of both, of which one is trained.
TEST(TrainedEmbeddings, AreCopiesBesideTheFrozenOnes) {
  const TrainingJob job = small_llama();
  const Bytes both = 2 * 2 * job.model.vocabulary * job.model.width;  // word embedding and output layer, bf16
  const auto held = [](const Trace& t, StorageKind kind) {
    Bytes bytes = 0;
    for (const Storage& s : t.storages) bytes += s.kind == kind ? s.bytes : 0;
    return bytes;
  };
  const Trace lora = step_of(small_llama(), {"lora_rank=8"});
  const Trace trained = step_of(small_llama(), {"lora_rank=8", "trained_embeddings=true"});
  EXPECT_EQ(held(trained, StorageKind::parameter) - held(lora, StorageKind::parameter), both);
  EXPECT_EQ(held(trained, StorageKind::optimizer_state) - held(lora, StorageKind::optimizer_state), 2 * both);
  EXPECT_THROW(step_of(small_llama(), {"trained_embeddings=true"}), UsageError);
}

// Compiled layers with LoRA run the products that eager ones run, and keep what goes into them.
TEST(CompiledLora, HasTheProductsOfEagerLora) {
  for (const char* also : {"checkpoint=none", "checkpoint=full", "weights_in_nf4=true"}) {
    const Trace eager = step_of(small_llama(), {"lora_rank=8", also});
    const Trace compiled = step_of(small_llama(), {"lora_rank=8", "execution=compiled", also});
    // An eager re-run stops before the last product, that of the last pair.
    const double last = std::string(also) == "checkpoint=full" ? kLayers * 2.0 * (2 * 128) * 8 * 256 : 0;
    EXPECT_EQ(product_flops(compiled, DataType::unknown), product_flops(eager, DataType::unknown) + last) << also;
    EXPECT_EQ(count(compiled, "bitsandbytes::dequantize_4bit"), count(eager, "bitsandbytes::dequantize_4bit")) << also;
    EXPECT_LT(compiled.ops.size(), eager.ops.size()) << also;
  }
  EXPECT_THROW(step_of(small_llama(), {"lora_rank=8", "execution=compiled", "lora_dropout=0.1"}), UsageError);
}

// One for each pair of each layer (queries, values, attention's output, three of the MLP), forward and backward; the
// first layer's queries and values need no gradient of their input.
TEST(LoraDropout, EachPairHasItsOwn) {
  constexpr std::int64_t kPairs = 6;
  const Trace plain = step_of(small_llama(), {"lora_rank=8"});
  const Trace dropped = step_of(small_llama(), {"lora_rank=8", "lora_dropout=0.1"});
  EXPECT_EQ(count(dropped, "aten::native_dropout"), kLayers * kPairs);
  EXPECT_EQ(count(dropped, "aten::native_dropout_backward"), kLayers * kPairs - 2);
  EXPECT_EQ(count(plain, "aten::native_dropout"), 0);
  EXPECT_EQ(product_flops(dropped, DataType::unknown), product_flops(plain, DataType::unknown));
  EXPECT_THROW(step_of(small_llama(), {"lora_dropout=0.1"}), UsageError);
}

// 256 tokens, 1,000 words, width 256: four pieces of 64 rows.
TEST(FusedLinearLoss, PiecesAreAsLargeAsTheInputRoundedUpToAPowerOfTwo) {
  EXPECT_EQ(fused_loss_rows(256, 1000, 256), 64);
  EXPECT_EQ(fused_loss_rows(16384, 32000, 4096), 2048) << "the example in Liger's source";
  EXPECT_EQ(fused_loss_rows(100, 1000, 256), 32) << "25 rows, rounded up";
  EXPECT_EQ(fused_loss_rows(100, 200, 256), 100) << "one piece, not more rows than there are";
}

TEST(FusedLinearLoss, GradientsAreMadeInForwardAndProductsStayTheSame) {
  const Trace plain = step_of(small_llama(), {}), fused = step_of(small_llama(), {"fused_linear_loss=true"});
  EXPECT_EQ(product_flops(fused, DataType::unknown), product_flops(plain, DataType::unknown));
  EXPECT_EQ(count(fused, "liger::cross_entropy"), 4);
  EXPECT_EQ(count(fused, "aten::_log_softmax"), 0);
  double in_forward = 0;
  for (const Op& op : fused.ops)
    if (op.operator_class == OperatorClass::gemm && op.phase == Phase::forward) in_forward += op.flops;
  double layers = 0;
  for (const Op& op : plain.ops)
    if (op.operator_class == OperatorClass::gemm && op.phase == Phase::forward) layers += op.flops;
  EXPECT_EQ(in_forward - layers, 2 * 2.0 * 256 * 1000 * 256) << "two products of the output layer more";
}

// No storage of the step holds the logits of all tokens.
TEST(FusedLinearLoss, AllLogitsAreNeverHeld) {
  const auto largest = [](const Trace& t) {
    Bytes most = 0;
    for (const Storage& storage : t.storages) most = std::max(most, storage.bytes);
    return most;
  };
  const std::vector<std::string> wide{"vocabulary=30000", "longest=2048", "sequence=2048"};
  std::vector<std::string> fused = wide;
  fused.push_back("fused_linear_loss=true");
  EXPECT_GE(largest(step_of(small_llama(), wide)), Bytes{2} * 2048 * 30000 * 2);
  EXPECT_LE(largest(step_of(small_llama(), fused)), Bytes{30000} * 256 * 4) << "the output layer's gradient in fp32";
}

TEST(FusedLinearLoss, WithPiecesOfAnotherKindItIsRefused) {
  EXPECT_THROW(step_of(small_llama(), {"fused_linear_loss=true", "loss_chunks=4"}), UsageError);
  EXPECT_THROW(step_of(small_llama(), {"fused_linear_loss=true", "precision=amp_bf16"}), UsageError);
}

TEST(CompiledFp8, ProductsOfLayersAreInFp8AndTheOutputLayersAreNot) {
  const Trace wide = step_of(small_llama(), {"execution=compiled"});
  const Trace narrow = step_of(small_llama(), {"execution=compiled", "precision=fp8"});
  EXPECT_EQ(product_flops(narrow, DataType::unknown), product_flops(wide, DataType::unknown));
  // Three products of each weight: 6 FLOPs per element and token.
  const double elements = kLayers * (4.0 * 256 * 256 + 3.0 * 256 * 512);
  EXPECT_EQ(product_flops(narrow, DataType::fp8), 6 * elements * 256);
  EXPECT_EQ(product_flops(wide, DataType::fp8), 0);
  // A layer's inputs (normalized twice, attention's and the MLP's) are cast once in forward and once in backward, seven
  // gradients once, seven weights in both.
  EXPECT_EQ(count(narrow, "triton::fused_to_fp8"), kLayers * (4 + 4 + 7 + 7 + 7));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
