// Linear layers in fp8 by Transformer Engine, undivided and divided: products, what is cast when, what is kept, what is
// sent. Expected numbers follow from transformer_engine/pytorch/module/linear.py and layernorm_linear.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/error.h"
#include "tests/support/parallel_ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::int64_t kLayers = 2, kTokens = 64, kWidth = 256, kInner = 512, kVocabulary = 1024, kPasses = 3;

// Llama's layers, as Megatron-LM joins their products.
Model llama() {
  Model m;
  m.name = "small llama";
  m.layers = kLayers, m.width = kWidth, m.heads = 8, m.key_value_heads = 4, m.inner = kInner;
  m.vocabulary = kVocabulary, m.longest = kTokens;
  m.normalization = Normalization::rms_norm;
  m.activation = Activation::swiglu;
  m.positions = Positions::rotary;
  m.bias = m.query_key_value_bias = m.tied_embedding = false;
  m.joint_query_key_value = true;
  return m;
}

Recipe engine(std::int64_t tensor, Fp8Recipe scaling = Fp8Recipe::tensorwise) {
  Recipe r = parallel_recipe(tensor, 1, 1, kPasses);
  r.precision = Precision::fp8_transformer_engine;
  r.fp8_recipe = scaling;
  r.parallel.main_gradients = MainGradients::fp32_fused;
  r.parallel.sequence_parallel = tensor > 1;
  return r;
}

// Elements of a layer's weights: joint queries, keys and values; output; joint gate and up; down.
constexpr std::int64_t kQkv = kWidth * (kWidth + 2 * kWidth / 2), kOut = kWidth * kWidth, kUp = kWidth * 2 * kInner,
                       kDown = kInner * kWidth, kLayer = kQkv + kOut + kUp + kDown;

Trace rank_of(const Recipe& recipe) { return generated_ranks(llama(), recipe).front(); }

std::int64_t count(const Trace& t, std::string_view name, std::string_view module = "", Phase phase = Phase::unknown) {
  return std::count_if(t.ops.begin(), t.ops.end(), [&](const Op& op) {
    return op.kind == OpKind::kernel && t.strings[op.name] == name && starts_with(t.strings[op.module], module) &&
           (phase == Phase::unknown || op.phase == phase);
  });
}

double product_flops(const Trace& t, DataType type) {
  double flops = 0;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::kernel && op.operator_class == OperatorClass::gemm && op.data_type == type)
      flops += op.flops;
  return flops;
}

TEST(TransformerEngine, ProductsOfLayersAreFp8) {
  const Trace t = rank_of(engine(1));
  EXPECT_EQ(product_flops(t, DataType::fp8), 6.0 * kPasses * kTokens * kLayers * kLayer);
  EXPECT_EQ(product_flops(t, DataType::bf16), 6.0 * kPasses * kTokens * kVocabulary * kWidth);  // the output layer
}

// Over all ranks, in pieces or not.
TEST(TransformerEngine, RanksTogetherComputeWhatOneDoes) {
  for (const std::int64_t tensor : {2, 4})
    for (const bool overlap : {false, true}) {
      Recipe recipe = engine(tensor);
      recipe.parallel.tp_comm_overlap = overlap;
      EXPECT_EQ(product_flops(rank_of(recipe), DataType::fp8) * static_cast<double>(tensor),
                6.0 * kPasses * kTokens * kLayers * kLayer);
    }
}

// Weights once in a step, inputs and gradients in each pass; four products a layer.
TEST(TransformerEngine, CurrentScalingReadsEachTensorTwice) {
  const Trace t = rank_of(engine(1));
  const std::int64_t casts = 4 * kLayers * (1 + 2 * kPasses);
  EXPECT_EQ(count(t, "transformer_engine::cast_transpose"), casts);
  EXPECT_EQ(count(t, "transformer_engine::amax"), casts);
  EXPECT_EQ(count(t, "transformer_engine::fused_amax_and_scale_update"), 0);
}

// A normalization in front writes fp8 itself, whose transpose backward needs; scales are made once in each direction.
TEST(TransformerEngine, DelayedScalingKnowsItsScales) {
  const Trace t = rank_of(engine(1, Fp8Recipe::delayed));
  EXPECT_EQ(count(t, "transformer_engine::amax"), 0);
  EXPECT_EQ(count(t, "transformer_engine::cast_transpose"), kLayers * (4 + 2 * kPasses + 4 * kPasses));
  EXPECT_EQ(count(t, "transformer_engine::rmsnorm_fwd_fp8"), 2 * kLayers * kPasses);
  EXPECT_EQ(count(t, "transformer_engine::fp8_transpose"), 2 * kLayers * kPasses);
  EXPECT_EQ(count(t, "transformer_engine::fused_amax_and_scale_update", "", Phase::forward), kPasses);
  EXPECT_EQ(count(t, "transformer_engine::fused_amax_and_scale_update", "", Phase::backward), kPasses);
}

Bytes kept_in(const Trace& t, std::string_view module, std::string_view label) {
  Bytes bytes = 0;
  for (const KeptTensor& one : kept_before(t, first_backward(t)))
    if (starts_with(one.module, module) && starts_with(one.label, label)) bytes += one.bytes;
  return bytes;
}

// Of an input its transpose, a byte per element; of one that is gathered this rank's tokens.
TEST(TransformerEngine, InputsAreKeptInFp8) {
  Recipe recipe = engine(1);
  recipe.accumulation = 1;
  const Trace whole = rank_of(recipe);
  EXPECT_EQ(kept_in(whole, "layers.1.", "transformer_engine::cast"), kTokens * (3 * kWidth + kInner));
  recipe = engine(2);
  recipe.accumulation = 1;
  const Trace half = rank_of(recipe);
  EXPECT_EQ(kept_in(half, "layers.1.", "transformer_engine::cast"), kTokens * (3 * kWidth + kInner) / 2);
}

Bytes fp8_parameters(const Trace& t) {
  Bytes bytes = 0;
  for (const Storage& s : t.storages)
    if (s.preexisting && t.strings[s.label].find(".fp8") != std::string::npos) bytes += s.bytes;
  return bytes;
}

TEST(TransformerEngine, WeightsAreKeptTwiceAByte) {
  Recipe recipe = engine(1);
  const Trace both = rank_of(recipe);
  EXPECT_EQ(fp8_parameters(both), 2 * kLayers * kLayer);
  recipe.fp8_parameters = true;
  const Trace alone = rank_of(recipe);
  EXPECT_EQ(fp8_parameters(alone), kLayers * kLayer);  // the transposed ones
  EXPECT_EQ(preexisting_bytes(both, StorageKind::parameter) - preexisting_bytes(alone, StorageKind::parameter),
            2 * kLayers * kLayer);
  EXPECT_EQ(count(both, "transformer_engine::cast_transpose") - count(alone, "transformer_engine::cast_transpose"),
            4 * kLayers);
  EXPECT_EQ(count(alone, "transformer_engine::fp8_transpose"), 4 * kLayers);  // once in a step
  recipe.fp8_weight_cache = false;
  const Trace anew = rank_of(recipe);
  EXPECT_EQ(fp8_parameters(anew), 0);
  EXPECT_EQ(count(anew, "transformer_engine::fp8_transpose"), 4 * kLayers * kPasses);
}

// What an optimizer step writes back: with current scaling magnitudes first.
TEST(TransformerEngine, UpdatedParametersAreScaled) {
  Recipe recipe = engine(1);
  EXPECT_EQ(count(rank_of(recipe), "transformer_engine::multi_tensor_amax"), 0);
  recipe.fp8_parameters = true;
  EXPECT_EQ(count(rank_of(recipe), "transformer_engine::multi_tensor_amax"), 1);
  recipe.fp8_recipe = Fp8Recipe::delayed;
  EXPECT_EQ(count(rank_of(recipe), "transformer_engine::multi_tensor_amax"), 0);
}

std::vector<Bytes> sent_in(const Trace& t, std::string_view module, CollectiveKind kind, Phase phase) {
  std::vector<Bytes> found;
  for (const Op& op : collectives_of(t, "tensor parallel"))
    if (op.collective == kind && op.phase == phase && starts_with(t.strings[op.module], module))
      found.push_back(op.bytes);
  return found;
}

// Gathers are fp8, sums bf16; whoever gathers agrees on the scale.
TEST(TransformerEngine, MessagesOfALayer) {
  constexpr Bytes kFp8 = kTokens * kWidth / 2, kBf16 = kTokens * kWidth;  // sent by one of two ranks
  using Bytes_ = std::vector<Bytes>;
  Recipe recipe = engine(2);
  recipe.accumulation = 1;
  const Trace t = rank_of(recipe);
  const std::string at = "layers.1.";
  EXPECT_EQ(sent_in(t, at, CollectiveKind::all_gather, Phase::forward), (Bytes_{kFp8, kFp8}));
  EXPECT_EQ(sent_in(t, at, CollectiveKind::reduce_scatter, Phase::forward), (Bytes_{kBf16, kBf16}));
  EXPECT_EQ(sent_in(t, at, CollectiveKind::all_gather, Phase::backward), (Bytes_{kFp8, kFp8, kFp8, kFp8}));
  EXPECT_EQ(sent_in(t, at, CollectiveKind::reduce_scatter, Phase::backward), (Bytes_{kBf16, kBf16}));
  EXPECT_EQ(sent_in(t, at, CollectiveKind::all_reduce, Phase::forward), (Bytes_{4, 4}));
  EXPECT_EQ(sent_in(t, at, CollectiveKind::all_reduce, Phase::backward), (Bytes_{4, 4}));
}

// As many bytes, in a piece less than there are ranks.
TEST(TransformerEngine, OverlappedMessagesComeInPieces) {
  Recipe recipe = engine(4);
  recipe.accumulation = 1;
  const Trace whole = rank_of(recipe);
  recipe.parallel.tp_comm_overlap = true;
  const Trace pieces = rank_of(recipe);
  for (const Phase phase : {Phase::forward, Phase::backward})
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      const std::vector<Bytes> one = sent_in(whole, "layers.0.", kind, phase),
                               many = sent_in(pieces, "layers.0.", kind, phase);
      Bytes sum_of_one = 0, sum_of_many = 0;
      for (const Bytes b : one) sum_of_one += b;
      for (const Bytes b : many) sum_of_many += b;
      EXPECT_NEAR(sum_of_many, sum_of_one, 32);  // thirds are rounded
      // In backward a column's own run beside products already.
      const std::size_t bulk = phase == Phase::backward ? 2 : 0;
      EXPECT_EQ(many.size(), 3 * (one.size() - bulk) + bulk);
    }
  EXPECT_EQ(count(pieces, "transformer_engine::fp8_gemm", "layers.0.", Phase::forward), 4 * 4);
  EXPECT_EQ(count(whole, "transformer_engine::fp8_gemm", "layers.0.", Phase::forward), 4);
}

// The same of products in 16 bits. The output layer is no module of Transformer Engine's.
TEST(TransformerEngine, ProductsIn16BitsOverlapToo) {
  Recipe recipe = engine(4);
  recipe.precision = Precision::bf16;
  recipe.fp8_recipe = Fp8Recipe::delayed;
  recipe.parallel.tp_comm_overlap = true;
  recipe.accumulation = 1;
  const Trace t = rank_of(recipe);
  EXPECT_EQ(count(t, "aten::mm", "layers.0.", Phase::forward), 4 * 4);
  EXPECT_EQ(count(t, "aten::mm", "head", Phase::forward), 1);
  EXPECT_EQ(product_flops(t, DataType::bf16) * 4, 6.0 * kTokens * (kLayers * kLayer + kVocabulary * kWidth));
}

TEST(TransformerEngine, GradientsIn16BitsHalveTheirBuffer) {
  Recipe recipe = engine(1);
  const Bytes in_fp32 = preexisting_bytes(rank_of(recipe), StorageKind::gradient);
  recipe.parallel.main_gradients = MainGradients::bf16_fused;
  recipe.parallel.distributed_optimizer = true;
  recipe.data_parallel = 2;
  const Trace t = rank_of(recipe);
  EXPECT_EQ(2 * preexisting_bytes(t, StorageKind::gradient), in_fp32);
  const Op scattered = collectives_of(t, "data parallel").front();
  EXPECT_EQ(scattered.collective, CollectiveKind::reduce_scatter);
  EXPECT_EQ(scattered.bytes, in_fp32 / 4);
  EXPECT_EQ(scattered.data_type, DataType::bf16);
}

// The gradient takes the place of the logits, which stay in 16 bits; three numbers a row are gathered.
TEST(TransformerEngine, FusedLossKeepsLogitsIn16Bits) {
  Recipe recipe = engine(2);
  recipe.accumulation = 1;
  recipe.parallel.cross_entropy_loss_fusion = true;
  const Trace t = rank_of(recipe);
  constexpr Bytes kLogits = kTokens * kVocabulary / 2 * 2;
  EXPECT_EQ(kept_in(t, "head", ""), kLogits);
  const std::vector<Bytes> gathers = sent_in(t, "", CollectiveKind::all_gather, Phase::forward);
  EXPECT_EQ(gathers.back(), 3 * kTokens * 4);
}

// Pairs beside all products: over all ranks as many elements, and as many FLOPs, as on one.
TEST(TransformerEngine, AdaptersAreDividedToo) {
  constexpr std::int64_t kRank = 16;
  Recipe recipe = engine(1);
  recipe.fp8_parameters = true;
  recipe.lora_rank = kRank;
  recipe.accumulation = 1;
  const auto adapters = [](const Trace& t) {
    Bytes bytes = 0;
    for (const Storage& s : t.storages)
      if (s.preexisting && t.strings[s.label].find("lora") != std::string::npos) bytes += s.bytes;
    return bytes / 2;
  };
  const std::int64_t pairs = kRank * ((kWidth + 2 * kWidth) + 2 * kWidth + (kWidth + 2 * kInner) + (kInner + kWidth));
  const Trace one = rank_of(recipe);
  EXPECT_EQ(adapters(one), kLayers * pairs);
  Recipe divided = recipe;
  divided.parallel.tensor = 2, divided.parallel.sequence_parallel = true;
  const Trace half = rank_of(divided);
  EXPECT_EQ(2 * adapters(half), adapters(one));
  const auto products = [](const Trace& t) {
    return product_flops(t, DataType::fp8) + product_flops(t, DataType::bf16);
  };
  EXPECT_EQ(2 * products(half), products(one));
  // Frozen weights have no gradients, and inputs are not kept for them.
  EXPECT_EQ(count(half, "transformer_engine::fp8_wgrad_gemm"), 0);
  EXPECT_EQ(kept_in(half, "layers.1.", "transformer_engine::cast"), 0);
  recipe.lora_targets = LoraTargets::query_key_value;
  EXPECT_EQ(adapters(rank_of(recipe)), kLayers * kRank * (kWidth + 2 * kWidth));
}

std::string refusal(const Model& model, const Recipe& recipe) {
  try {
    generate_step(model, recipe);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// A network by itself: three products for queries, keys and values.
TEST(TransformerEngine, OnOneGpu) {
  Model model = llama();
  model.joint_query_key_value = false;
  Recipe recipe;
  recipe.precision = Precision::fp8_transformer_engine;
  const Trace t = generate_step(model, recipe);
  EXPECT_EQ(product_flops(t, DataType::fp8), 6.0 * kTokens * kLayers * kLayer);
  EXPECT_EQ(count(t, "transformer_engine::rmsnorm_fwd_fp8"), 0);  // each product casts for itself
  recipe.data_parallel = 4;
  EXPECT_EQ(refusal(model, recipe), "");
}

TEST(TransformerEngine, RefusesWhatItDoesNotHave) {
  const auto said = [](const Recipe& recipe, std::string_view part) {
    const std::string why = refusal(llama(), recipe);
    EXPECT_NE(why.find(part), std::string::npos) << "expected: " << part << "\nsaid: " << why;
  };
  Recipe recipe = engine(2);
  recipe.parallel.sequence_parallel = false;
  recipe.parallel.tp_comm_overlap = true;
  said(recipe, "expected sequence_parallel=1");
  recipe = engine(1);
  recipe.fp8_parameters = true;
  recipe.parallel.main_gradients = MainGradients::fp32;
  said(recipe, "expected main_gradients=fp32_fused or bf16_fused");
  recipe = engine(1);
  recipe.parallel.framework = ParallelFramework::deepspeed;
  recipe.parallel.main_gradients = MainGradients::fp32;
  said(recipe, "expected parallel_framework=megatron");
  recipe = Recipe();
  recipe.fp8_parameters = true;
  said(recipe, "but for precision: fp8_transformer_engine");
  recipe = Recipe();
  recipe.precision = Precision::fp8_transformer_engine;
  recipe.execution = ExecutionMode::compiled;
  said(recipe, "but for transformers run eagerly");
  recipe = engine(1);
  recipe.sequence = 33;
  said(recipe, "expected multiples of 16");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
