// Is a generated step the one that PyTorch runs? Against captures of the same networks: the same ops, allocations and
// frees in the same order, to the byte. Against closed forms: what a layer saves, FLOPs, parameters.
#include "models/workload/generate/generate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "models/workload/generate/network.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/races.h"
#include "tests/support/step_lines.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

// --- the networks of traces/samples/captures/models.py

struct Sample {
  Model model;
  Recipe recipe;
};

Model gpt2() {
  Model m;
  m.name = "gpt2_124m";
  m.layers = 12, m.width = 768, m.heads = 12, m.vocabulary = 50257, m.longest = 1024, m.dropout = 0.1;
  return m;
}

Model llama() {
  Model m;
  m.name = "llama3_8b";
  m.layers = 32, m.width = 4096, m.heads = 32, m.key_value_heads = 8, m.inner = 14336, m.vocabulary = 128256;
  m.longest = 4096;
  m.normalization = Normalization::rms_norm_in_parts;
  m.activation = Activation::swiglu;
  m.positions = Positions::rotary;
  m.bias = m.query_key_value_bias = m.joint_query_key_value = m.tied_embedding = false;
  return m;
}

Model mixtral() {
  Model m = llama();
  m.name = "mixtral_small";
  m.layers = 8, m.width = 1024, m.heads = 16, m.key_value_heads = 4, m.inner = 3584, m.vocabulary = 32000;
  m.experts = 8, m.experts_per_token = 2;
  return m;
}

Model bert() {
  Model m;
  m.name = "bert_large";
  m.architecture = Architecture::encoder;
  m.layers = 24, m.width = 1024, m.heads = 16, m.vocabulary = 30522, m.longest = 512, m.dropout = 0.1;
  return m;
}

Model vit() {
  Model m;
  m.name = "vit_l";
  m.architecture = Architecture::vision;
  m.layers = 24, m.width = 1024, m.heads = 16;
  return m;
}

Model resnet() {
  Model m;
  m.name = "resnet50";
  m.architecture = Architecture::resnet;
  m.blocks = {3, 4, 6, 3};
  return m;
}

Sample sample(const std::string& name) {
  Recipe r;
  r.sums_in_place = false;  // the captures are of fake tensors
  r.precision = Precision::amp_bf16;
  if (name == "gpt2_124m") return r.batch = 8, Sample{gpt2(), r};
  if (name == "bert_large") return r.batch = 16, Sample{bert(), r};
  if (name == "vit_l") return r.batch = 32, Sample{vit(), r};
  if (name == "resnet50") return r.batch = 128, Sample{resnet(), r};
  r.precision = Precision::bf16;
  if (name == "llama3_8b") return Sample{llama(), r};
  r.batch = 4, r.sequence = 2048;
  return Sample{mixtral(), r};
}

// --- what is compared

Bytes sum(const std::vector<Bytes>& bytes) {
  Bytes all = 0;
  for (const Bytes b : bytes) all += b;
  return all;
}

double flops_of(const Trace& t) {
  double flops = 0;
  for (const Op& op : t.ops) flops += op.flops;
  return flops;
}

Bytes parameter_bytes(const Trace& t) {
  Bytes bytes = 0;
  for (const Storage& s : t.storages) bytes += s.kind == StorageKind::parameter ? s.bytes : 0;
  return bytes;
}

// --- against captures

class GeneratedAndCaptured : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const fs::path path = fs::path(MEMWALL_SOURCE) / "traces/samples/captures" / (std::string(GetParam()) + ".mwc.gz");
    if (!fs::exists(path)) GTEST_SKIP() << path << " is absent";
    captured_ = read_mwc(path).trace;
    const Sample s = sample(GetParam());
    generated_ = generate_step(s.model, s.recipe);
  }
  Trace captured_, generated_;
};

TEST_P(GeneratedAndCaptured, HaveTheSameOpsAllocationsAndFreesInTheSameOrder) {
  const auto captured = lines_of(captured_), generated = lines_of(generated_);
  for (std::size_t i = 0; i < std::min(captured.size(), generated.size()); ++i)
    ASSERT_EQ(generated[i], captured[i]) << "line " << i;
  EXPECT_EQ(generated.size(), captured.size());
}

TEST_P(GeneratedAndCaptured, SaveTheSameForBackwardAndPeakAlike) {
  const SavedAndPeak captured = memory_of(captured_), generated = memory_of(generated_);
  EXPECT_EQ(generated.saved, captured.saved);
  EXPECT_EQ(generated.peak, captured.peak);
  EXPECT_EQ(parameter_bytes(generated_), parameter_bytes(captured_));
  EXPECT_EQ(flops_of(generated_), flops_of(captured_));
}

TEST_P(GeneratedAndCaptured, AreSoundAndKindsOfStoragesAgree) {
  EXPECT_TRUE(check(generated_).empty()) << check(generated_).front();
  std::vector<Bytes> captured(kStorageKinds, 0), generated(kStorageKinds, 0);
  for (const Storage& s : captured_.storages)
    if (captured_.places[s.place] == "hbm") captured[static_cast<std::size_t>(s.kind)] += s.bytes;
  for (const Storage& s : generated_.storages) generated[static_cast<std::size_t>(s.kind)] += s.bytes;
  for (const StorageKind kind : {StorageKind::parameter, StorageKind::gradient, StorageKind::optimizer_state})
    EXPECT_EQ(generated[static_cast<std::size_t>(kind)], captured[static_cast<std::size_t>(kind)]) << to_string(kind);
}

// Views, and what Python's dispatch of tensor subclasses adds to them, are counted otherwise: within a fifth.
TEST_P(GeneratedAndCaptured, DispatchAboutAsManyOperators) {
  const auto calls = [](const Trace& t) {
    double n = 0;
    for (const Op& op : t.ops) n += op.phase == Phase::optimizer ? 0 : op.framework_calls;
    return n;
  };
  EXPECT_NEAR(calls(generated_) / calls(captured_), 1, 0.2);
}

INSTANTIATE_TEST_SUITE_P(Samples, GeneratedAndCaptured,
                         ::testing::Values("gpt2_124m", "llama3_8b", "bert_large", "vit_l", "mixtral_small",
                                           "resnet50"),
                         [](const auto& p) { return std::string(p.param); });

// --- against closed forms

// Bytes that the second layer adds to what lives where backward begins.
Bytes layer_bytes(Model m, const Recipe& r) {
  m.layers = 1;
  const Bytes one = sum(memory_of(generate_step(m, r)).saved);
  m.layers = 2;
  return sum(memory_of(generate_step(m, r)).saved) - one;
}

constexpr std::int64_t s = 512, b = 3, h = 768, a = 12;

Model llama_like_gpt2() {
  Model m = llama();
  m.normalization = Normalization::rms_norm;
  m.layers = 12, m.width = h, m.heads = a, m.key_value_heads = 4, m.inner = 2048, m.vocabulary = 32000;
  return m;
}

Recipe pure_16_bit() {
  Recipe r;
  r.batch = b, r.sequence = s;
  r.precision = Precision::fp16;
  return r;
}

// Korthikanti et al. 2022, equation 1: 34sbh + 5as^2b; and mean and deviation of two normalizations, in fp32.
TEST(SavedActivations, OfAGptLayerWithPlainAttentionAreTheFormula) {
  Recipe r = pure_16_bit();
  r.attention = Attention::plain;
  EXPECT_EQ(layer_bytes(gpt2(), r), 34 * s * b * h + 5 * a * s * s * b + 16 * s * b);
}

// The scores vanish; a sum of exponentials per row and head stays, and the state of the generator.
TEST(SavedActivations, OfAGptLayerWithFlashAttention) {
  EXPECT_EQ(layer_bytes(gpt2(), pure_16_bit()), 34 * s * b * h + 4 * a * b * s + 16 * s * b + 24);
}

TEST(SavedActivations, WithoutDropoutLackTheMasks) {
  Model m = gpt2();
  m.dropout = 0;
  EXPECT_EQ(layer_bytes(m, pure_16_bit()), 32 * s * b * h + 4 * a * b * s + 16 * s * b + 24);
}

// 12sbh + 4sbh g/a + 8sbf + 4abs, and one deviation for each of two normalizations.
TEST(SavedActivations, OfALlamaLayerWithGroupedQueries) {
  EXPECT_EQ(layer_bytes(llama_like_gpt2(), pure_16_bit()),
            12 * s * b * h + 4 * s * b * h * 4 / a + 8 * s * b * 2048 + 4 * a * b * s + 8 * s * b + 24);
}

// By PyTorch's operators heads of keys and values are copied for all queries that share them: 4sbh, whatever their
// number; and the probabilities, 2as^2b.
TEST(SavedActivations, OfALlamaLayerWithGroupedQueriesAndPlainAttention) {
  Recipe r = pure_16_bit();
  r.attention = Attention::plain;
  EXPECT_EQ(layer_bytes(llama_like_gpt2(), r),
            12 * s * b * h + 4 * s * b * h + 8 * s * b * 2048 + 2 * a * s * s * b + 8 * s * b);
}

// torch.utils.checkpoint keeps the layer's input, 2sbh, and the first layer's more than that once.
TEST(SavedActivations, OfACheckpointedLayerAreItsInput) {
  Recipe r = pure_16_bit();
  r.checkpoint = ActivationCheckpoint::full;
  EXPECT_EQ(layer_bytes(gpt2(), r), 2 * s * b * h);
  EXPECT_EQ(layer_bytes(llama_like_gpt2(), r), 2 * s * b * h);
}

// Inputs of products and of attention, and what those give: x, two normed, Q, K, V, O, the sum in the middle, gate and
// up, and their product.
TEST(SavedActivations, OfACompiledLlamaLayer) {
  Recipe r = pure_16_bit();
  r.execution = ExecutionMode::compiled;
  EXPECT_EQ(layer_bytes(llama_like_gpt2(), r),
            12 * s * b * h + 4 * s * b * h * 4 / a + 6 * s * b * 2048 + 4 * a * b * s + 8 * s * b + 16);
  Model m = llama_like_gpt2();
  m.expanded_key_value = true;
  EXPECT_EQ(layer_bytes(m, r), 16 * s * b * h + 6 * s * b * 2048 + 4 * a * b * s + 8 * s * b + 16);
}

// The kernel of fused attention changes what attention takes, not what lives: but for a number of the random generator,
// which FlashAttention keeps as a pair.
TEST(SavedActivations, AreTheSameOfEachFusedAttention) {
  Recipe r = pure_16_bit();
  const Bytes flash = layer_bytes(gpt2(), r);
  for (const Attention attention : {Attention::flash1, Attention::flash3, Attention::flash4, Attention::cudnn,
                                    Attention::memory_efficient, Attention::triton}) {
    r.attention = attention;
    const bool single = attention == Attention::cudnn || attention == Attention::memory_efficient;
    EXPECT_EQ(layer_bytes(gpt2(), r), flash - (single ? bytes_of(DataType::int64) : 0));
    const Trace t = generate_step(gpt2(), r);
    std::size_t found = 0;
    for (const Op& op : t.ops) {
      if (op.operator_class != OperatorClass::attention) continue;
      ++found;
      EXPECT_EQ(attention_kernel(t.shapes[op.shape]), attention_kernel(attention));
    }
    EXPECT_EQ(found, 2 * static_cast<std::size_t>(gpt2().layers));
  }
}

// Megatron-LM's: no bias is added before the mask of a dropout is drawn, nothing else changes.
TEST(SavedActivations, OfAGptLayerWithFusedKernelsAreTheFormula) {
  Recipe r = pure_16_bit();
  r.attention = Attention::plain;
  r.fused_kernels = true;
  EXPECT_EQ(layer_bytes(gpt2(), r), 34 * s * b * h + 5 * a * s * s * b + 16 * s * b);
}

// --- recomputation

double flops_of(const Trace& t, Phase phase) {
  double flops = 0;
  for (const Op& op : t.ops) flops += op.phase == phase && op.operator_class == OperatorClass::gemm ? op.flops : 0;
  return flops;
}

// The second run stops with the last saved tensor: the mask of the dropout behind the last product, or without dropout
// what the last product reads, so that it need not be done again.
TEST(Checkpointing, RunsEachLayerAgainUpToItsLastSavedTensor) {
  for (const double dropout : {0.1, 0.0}) {
    Model m = gpt2();
    m.dropout = dropout;
    Recipe plain = pure_16_bit(), again = plain;
    again.checkpoint = ActivationCheckpoint::full;
    const Trace one = generate_step(m, plain), two = generate_step(m, again);
    EXPECT_EQ(flops_of(two, Phase::forward), flops_of(one, Phase::forward));
    EXPECT_EQ(flops_of(two, Phase::backward), flops_of(one, Phase::backward));
    EXPECT_EQ(flops_of(two, Phase::recompute), 12 * 2.0 * s * b * (3 + 1 + 4 + (dropout > 0 ? 4 : 0)) * h * h);
    EXPECT_LT(memory_of(two).peak, memory_of(one).peak);
  }
}

TEST(Checkpointing, NamesForEachOpTheOneThatItRepeats) {
  Recipe r = pure_16_bit();
  r.checkpoint = ActivationCheckpoint::full;
  const Trace t = generate_step(llama_like_gpt2(), r);
  const auto hashes = producer_hashes(t);
  int repeated = 0;
  for (std::size_t i = 0; i < t.ops.size(); ++i) {
    const Op& op = t.ops[i];
    if (op.phase != Phase::recompute || !runs_on_device(op.kind)) continue;
    ASSERT_LT(op.source, i);
    EXPECT_EQ(t.ops[op.source].operator_name, op.operator_name);
    EXPECT_EQ(t.ops[op.source].module, op.module);
    EXPECT_EQ(hashes[op.source], hashes[i]) << "op " << i << " computes something else";
    ++repeated;
  }
  EXPECT_GT(repeated, 12 * 20);
}

// --- against captures of two layers (traces/samples/captures/variants)

class SmallGpt : public ::testing::Test {
 protected:
  static Trace captured(const char* name) {
    return read_mwc(fs::path(MEMWALL_SOURCE) / "traces/samples/captures/variants" / (std::string(name) + ".mwc.gz"))
        .trace;
  }
  static Trace generated(const char* name, void (*change)(Recipe&)) {
    Model m = gpt2();
    m.name = name;
    m.layers = 2, m.width = 256, m.heads = 4, m.longest = 128, m.vocabulary = 1000;
    Recipe r;
    r.batch = 4;
    r.sums_in_place = r.loss_in_fp32 = false;
    change(r);
    return generate_step(m, r);
  }
  static std::vector<std::string> kernels_of(const Trace& t) {
    std::vector<std::string> lines;
    for (const std::string& line : lines_of(t))
      if (line.find("FLOPs") != std::string::npos) lines.push_back(line);
    return lines;
  }
};

// The order in which an abandoned second run lets its local variables go is not Python's: the peak is within 1 %.
TEST_F(SmallGpt, WithCheckpointsRunsTheSameKernelsAsTheCapture) {
  const Trace one = captured("checkpointed");
  const Trace two = generated("checkpointed", [](Recipe& r) { r.checkpoint = ActivationCheckpoint::full; });
  EXPECT_EQ(kernels_of(two), kernels_of(one));
  EXPECT_EQ(memory_of(two).saved, memory_of(one).saved);
  EXPECT_NEAR(static_cast<double>(memory_of(two).peak) / static_cast<double>(memory_of(one).peak), 1, 0.01);
}

TEST_F(SmallGpt, WithAChunkedLossRunsTheSameKernelsAsTheCapture) {
  const Trace one = captured("chunked");
  const Trace two = generated("chunked", [](Recipe& r) { r.loss_chunks = 8, r.loss_in_fp32 = true; });
  EXPECT_EQ(kernels_of(two), kernels_of(one));
  EXPECT_EQ(memory_of(two).saved, memory_of(one).saved);
  EXPECT_EQ(memory_of(two).peak, memory_of(one).peak);
}

TEST_F(SmallGpt, WithLoraIsTheCapture) {
  const Trace one = captured("lora");
  const Trace two = generated("lora", [](Recipe& r) { r.lora_rank = 8; });
  EXPECT_EQ(lines_of(two), lines_of(one));
}

// --- every way to run a step

struct Way {
  const char* name;
  void (*change)(Model&, Recipe&);
};

class EveryWay : public ::testing::TestWithParam<Way> {};

TEST_P(EveryWay, IsSoundAndFreesWhatItAllocates) {
  Model m = llama_like_gpt2();
  Recipe r = pure_16_bit();
  GetParam().change(m, r);
  const Trace t = generate_step(m, r);
  EXPECT_TRUE(check(t).empty()) << check(t).front();
  EXPECT_TRUE(races(t).empty()) << races(t).front();
  Bytes left = 0;
  for (const Op& op : t.ops)
    left += op.kind == OpKind::alloc  ? t.storages[op.target].bytes
            : op.kind == OpKind::free ? -t.storages[op.target].bytes
                                      : 0;
  EXPECT_LE(left, 4 * 4 + (r.execution == ExecutionMode::native ? 0 : 4)) << "more than the loss is left";
  EXPECT_GT(flops_of(t), 1e11);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, EveryWay,
    ::testing::Values(
        Way{"llama", [](Model&, Recipe&) {}}, Way{"gpt", [](Model& m, Recipe&) { m = gpt2(); }},
        Way{"plain", [](Model& m, Recipe& r) { m = gpt2(), r.attention = Attention::plain; }},
        Way{"cudnn", [](Model&, Recipe& r) { r.attention = Attention::cudnn; }},
        Way{"memory_efficient", [](Model&, Recipe& r) { r.attention = Attention::memory_efficient; }},
        Way{"checkpointed", [](Model&, Recipe& r) { r.checkpoint = ActivationCheckpoint::full; }},
        Way{"checkpointed_amp",
            [](Model& m, Recipe& r) {
              m = gpt2(), r.checkpoint = ActivationCheckpoint::full, r.precision = Precision::amp_bf16;
            }},
        Way{"checkpointed_mixture",
            [](Model& m, Recipe& r) { m = mixtral(), m.layers = 2, r.checkpoint = ActivationCheckpoint::full; }},
        Way{"lora", [](Model&, Recipe& r) { r.lora_rank = 8; }},
        Way{"lora_checkpointed",
            [](Model&, Recipe& r) { r.lora_rank = 8, r.checkpoint = ActivationCheckpoint::full; }},
        Way{"offloaded", [](Model&, Recipe& r) { r.activation_offload = true; }},
        Way{"offloaded_checkpointed",
            [](Model&, Recipe& r) { r.activation_offload = true, r.checkpoint = ActivationCheckpoint::full; }},
        Way{"offloaded_compiled",
            [](Model&, Recipe& r) { r.activation_offload = true, r.execution = ExecutionMode::compiled; }},
        Way{"chunked", [](Model&, Recipe& r) { r.loss_chunks = 8; }},
        Way{"torchtune", [](Model& m, Recipe&) { m.rotary_in_fp32 = m.expanded_key_value = true; }},
        Way{"normalized_heads", [](Model& m, Recipe&) { m.query_key_norm = true; }},
        Way{"compiled", [](Model&, Recipe& r) { r.execution = ExecutionMode::compiled; }},
        Way{"compiled_gpt", [](Model& m, Recipe& r) { m = gpt2(), r.execution = ExecutionMode::compiled; }},
        Way{"compiled_chunked_checkpointed",
            [](Model& m, Recipe& r) {
              m.rotary_in_fp32 = m.expanded_key_value = true;
              r.execution = ExecutionMode::compiled, r.loss_chunks = 7, r.checkpoint = ActivationCheckpoint::full;
            }},
        Way{"megatron",
            [](Model& m, Recipe& r) {
              m = gpt2(), r.attention = Attention::plain, r.fused_kernels = true;
              r.checkpoint = ActivationCheckpoint::full, r.master_parameters = true;
            }},
        Way{"native",
            [](Model& m, Recipe& r) {
              m = gpt2(), m.dropout = 0, r.execution = ExecutionMode::native, r.precision = Precision::bf16;
              r.master_parameters = true, r.data_parallel = 8, r.accumulation = 2;
            }}),
    [](const auto& p) { return std::string(p.param.name); });

// A checkpointed layer keeps nothing on the device; its input goes to the host and comes back, but for the last five.
TEST(Offloading, MovesTheInputsOfCheckpointedLayers) {
  Recipe r = pure_16_bit();
  r.checkpoint = ActivationCheckpoint::full;
  r.activation_offload = true;
  EXPECT_EQ(layer_bytes(llama_like_gpt2(), r), 2 * s * b * h) << "five of one or two layers are still held";
  const Trace t = generate_step(llama_like_gpt2(), r);
  Bytes out = 0, back = 0;
  for (const Op& op : t.ops) {
    if (op.kind != OpKind::copy) continue;
    (t.places[op.to] == "host" ? out : back) += op.bytes;
  }
  EXPECT_GE(out, 12 * 2 * s * b * h);
  EXPECT_LE(out - back, 5 * 2 * s * b * h);
  EXPECT_GT(back, 0);
  r.activation_offload = false;
  EXPECT_LT(memory_of(t).peak, memory_of(generate_step(llama_like_gpt2(), r)).peak);
}

// Frozen weights get no gradient, and nobody keeps what their gradient would need: of the products of a layer only the
// inputs that the pairs share stay. States: two per element of the pairs.
TEST(Lora, TrainsThePairsAndNothingElse) {
  Recipe r = pure_16_bit();
  r.lora_rank = 8;
  const Trace t = generate_step(llama_like_gpt2(), r);
  Bytes states = 0, gradients = 0;
  for (const Storage& storage : t.storages) {
    states += storage.kind == StorageKind::optimizer_state ? storage.bytes : 0;
    gradients += storage.kind == StorageKind::gradient ? storage.bytes : 0;
  }
  const std::int64_t keys = h * 4 / a, pairs = 12 * 8 * ((h + h) + (h + keys) + (h + h) + 3 * (h + 2048));
  EXPECT_EQ(gradients, 2 * pairs);
  EXPECT_EQ(states, 2 * 2 * pairs);
  const Trace all = generate_step(llama_like_gpt2(), pure_16_bit());
  // Of each product the gradient of its weight is saved, of the first layer also those of its inputs.
  EXPECT_LT(flops_of(t, Phase::backward), 0.6 * flops_of(all, Phase::backward));
  EXPECT_LT(memory_of(t).peak, memory_of(all).peak);
}

// A compiled step does the same products, in fewer kernels and without the framework.
TEST(Compiled, DoesTheSameProductsInFewerKernels) {
  Recipe eager = pure_16_bit(), compiled = eager;
  compiled.execution = ExecutionMode::compiled;
  const Trace one = generate_step(llama_like_gpt2(), eager), two = generate_step(llama_like_gpt2(), compiled);
  EXPECT_EQ(flops_of(one, Phase::forward), flops_of(two, Phase::forward));
  EXPECT_EQ(flops_of(one, Phase::backward), flops_of(two, Phase::backward));
  const auto kernels = [](const Trace& t) {
    return std::count_if(t.ops.begin(), t.ops.end(), [](const Op& op) { return op.kind == OpKind::kernel; });
  };
  EXPECT_LT(kernels(two), kernels(one));
}

// llm.c: what the eager step multiplies, with the vocabulary padded to 50304.
TEST(Native, DoesTheProductsOfTheModel) {
  Model m = gpt2();
  m.dropout = 0;
  Recipe r = pure_16_bit();
  r.precision = Precision::bf16, r.execution = ExecutionMode::native, r.master_parameters = true;
  const Trace t = generate_step(m, r);
  EXPECT_EQ(flops_of(t, Phase::forward) + flops_of(t, Phase::backward), 6.0 * s * b * (12 * 12 * h * h + h * 50304));
  for (const Op& op : t.ops) EXPECT_EQ(op.framework_calls, 0);
}

TEST(Settings, ThatAreNotImplementedTogetherAreNamed) {
  const auto refused = [](void (*change)(Model&, Recipe&)) -> std::string {
    Model m = llama_like_gpt2();
    Recipe r = pure_16_bit();
    change(m, r);
    try {
      generate_step(m, r);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refused([](Model&, Recipe& r) {
              r.precision = Precision::fp8;
              r.lora_rank = 8;
            }).find("fp8"),
            std::string::npos);
  EXPECT_NE(refused([](Model&, Recipe& r) {
              r.precision = Precision::fp8;
              r.batch = 1;
              r.sequence = 17;
            }).find("multiples of 16"),
            std::string::npos);
  EXPECT_NE(refused([](Model&, Recipe& r) { r.fused_kernels = true; }).find("fused_kernels"), std::string::npos);
  EXPECT_NE(refused([](Model&, Recipe& r) { r.execution = ExecutionMode::native; }).find("native"), std::string::npos);
  EXPECT_NE(refused([](Model& m, Recipe& r) { m = mixtral(), r.execution = ExecutionMode::compiled; }).find("compiled"),
            std::string::npos);
  EXPECT_NE(refused([](Model& m, Recipe& r) {
              m.head_size = 0, m.heads = m.width / 12;
              r.execution = ExecutionMode::compiled;
            }).find("multiple of 8"),
            std::string::npos)
      << "also where the size follows from width and heads";
  EXPECT_NE(refused([](Model&, Recipe& r) {
              r.precision = Precision::amp_bf16, r.execution = ExecutionMode::compiled;
            }).find("autocast"),
            std::string::npos);
  EXPECT_NE(refused([](Model& m, Recipe&) { m.vocabulary = std::int64_t{1} << 50; }).find("one"), std::string::npos)
      << "a tensor larger than any machine is refused";
}

// 6 FLOPs per parameter and token of the matrices, and attention's 7 products (Q K^T again in backward).
TEST(Flops, OfAGptAreTheStandardFormula) {
  Model m = gpt2();
  m.dropout = 0;
  Recipe r = pure_16_bit();
  r.optimizer = OptimizerKind::none;
  const Trace t = generate_step(m, r);
  double gemm = 0, attention = 0;
  for (const Op& op : t.ops) {
    if (op.operator_class == OperatorClass::gemm) gemm += op.flops;
    if (op.operator_class == OperatorClass::attention) attention += op.flops;
  }
  EXPECT_EQ(gemm, 6.0 * s * b * (12 * 12 * h * h + h * 50257));
  EXPECT_EQ(attention, 12 * 7 * 2.0 * b * s * s * h);
}

TEST(Generation, CountsParametersAsTheModelDoes) {
  for (const Model& m : {gpt2(), llama(), mixtral(), bert(), vit()}) {  // a ResNet has statistics besides
    Recipe r;
    r.optimizer = OptimizerKind::none;
    r.sequence = m.architecture == Architecture::vision ? 0 : 64;
    EXPECT_EQ(parameter_bytes(generate_step(m, r)), 2 * parameter_count(m)) << m.name;
  }
}

TEST(Generation, IsTheSameEachTime) {
  const Trace one = generate_step(gpt2(), pure_16_bit()), two = generate_step(gpt2(), pure_16_bit());
  EXPECT_EQ(lines_of(one), lines_of(two));
}

// The engine adds to a gradient that nobody else holds: fewer tensors are made, nothing else changes.
TEST(Generation, AddsToGradientsInPlace) {
  Recipe in_place = pure_16_bit(), apart = in_place;
  apart.sums_in_place = false;
  const Trace a_trace = generate_step(gpt2(), in_place), b_trace = generate_step(gpt2(), apart);
  EXPECT_LT(a_trace.storages.size(), b_trace.storages.size());
  EXPECT_EQ(flops_of(a_trace), flops_of(b_trace));
  EXPECT_LE(memory_of(a_trace).peak, memory_of(b_trace).peak);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
