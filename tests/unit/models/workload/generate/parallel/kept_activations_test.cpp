// What ranks of a parallel job keep of micro-batches in flight: against Korthikanti et al., term by term
// (../shared/spec/parallelism.md, 2.4, 3.3, G3, G4), and what recomputation and dropped outputs change.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/workload/generate/parallel/pipeline_order.h"
#include "models/workload/generate/parallel/stage_layers.h"
#include "tests/support/live_bytes.h"
#include "tests/support/parallel_ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes s = 2048, b = 1, h = 12288, a = 96, V = 51200, t = 8;
constexpr Bytes sbh = s * b * h, scores = 5 * a * s * s * b;

struct Kind {
  bool sequence_parallel = false, flash = false, selective = false;
};

Model gpt_with_dropout(std::int64_t layers) {
  Model m = gpt3(layers);
  m.dropout = 0.1;
  return m;
}

Recipe recipe_of(const Kind& kind, std::int64_t tensor, std::int64_t pipeline = 1, std::int64_t passes = 1) {
  Recipe r = parallel_recipe(tensor, pipeline, 1, passes);
  r.attention = kind.flash ? Attention::flash : Attention::plain;
  r.fused_kernels = true;
  r.checkpoint = kind.selective ? ActivationCheckpoint::selective : ActivationCheckpoint::none;
  r.parallel.sequence_parallel = kind.sequence_parallel;
  return r;
}

std::vector<KeptTensor> kept(const Trace& rank) { return kept_before(rank, first_backward(rank)); }

// By where it was made and how large it is.
Bytes sum_of(const std::vector<KeptTensor>& all, std::string_view module) {
  Bytes sum = 0;
  for (const KeptTensor& one : all)
    if (starts_with(one.module, module)) sum += one.bytes;
  return sum;
}

Bytes count_of(const std::vector<KeptTensor>& all, const std::string& module, Bytes bytes) {
  return std::count_if(all.begin(), all.end(),
                       [&](const KeptTensor& one) { return one.module == module && one.bytes == bytes; });
}

// What a layer keeps besides the formula: mean and deviation of two norms (fp32), and flash attention's log-sum-exps
// (fp32) with two scalars of its random numbers.
Bytes beside(const Kind& kind, Bytes tensor) {
  const Bytes tokens = kind.sequence_parallel ? tensor : 1;
  return 2 * 2 * 4 * s * b / tokens + (kind.flash ? 4 * a * s * b / tensor + 16 + 8 : 0);
}

TEST(KeptActivations, BytesOfALayerAreKorthikantis) {
  const auto layer = [](const Kind& kind, std::int64_t tensor) {
    Recipe recipe = recipe_of(kind, tensor);
    if (tensor == 1) recipe.parallel.main_gradients = MainGradients::fp32;  // by the same generator
    const Trace step = generated_ranks(gpt_with_dropout(3), recipe).front();
    return sum_of(kept(step), "layers.1") - beside(kind, tensor);
  };
  EXPECT_EQ(layer({false, false}, 1), 34 * sbh + scores);
  EXPECT_EQ(layer({false, false}, 1), 2'868'903'936);
  EXPECT_EQ(layer({false, false}, t), 10 * sbh + (24 * sbh + scores) / t);
  EXPECT_EQ(layer({false, false}, t), 578'813'952);
  EXPECT_EQ(layer({false, true}, t), 327'155'712);
  EXPECT_EQ(layer({true, false}, t), (34 * sbh + scores) / t);
  EXPECT_EQ(layer({true, false}, t), 358'612'992);
  EXPECT_EQ(layer({true, true}, t), 106'954'752);
}

// Selective recomputation keeps what flash attention does, without its log-sum-exps.
TEST(KeptActivations, SelectiveRecomputationKeepsNoScores) {
  const Kind kind{true, false, true};
  const Trace step = generated_ranks(gpt_with_dropout(3), recipe_of(kind, t)).front();
  EXPECT_EQ(sum_of(kept(step), "layers.1") - beside(kind, t), 106'954'752);
}

TEST(KeptActivations, TermByTerm) {
  for (const bool sequence_parallel : {false, true}) {
    constexpr Bytes two = 2;  // by which no term becomes as large as another
    const Trace step = generated_ranks(gpt_with_dropout(3), recipe_of({sequence_parallel, false}, two)).front();
    const std::vector<KeptTensor> all = kept(step);
    const Bytes tokens = sequence_parallel ? two : 1;
    const std::string at = "layers.1";
    EXPECT_EQ(count_of(all, at + ".norm1", 2 * sbh / tokens), 1) << "input of QKV";
    EXPECT_EQ(count_of(all, at + ".attention.qkv", 6 * sbh / two), 1) << "Q, K, V";
    EXPECT_EQ(count_of(all, at + ".attention", 2 * a * s * s * b / two), 2) << "softmax and its dropout";
    EXPECT_EQ(count_of(all, at + ".attention", a * s * s * b / two), 1) << "mask of the scores' dropout";
    EXPECT_EQ(count_of(all, at + ".attention", 2 * sbh / two), 1) << "input of the projection";
    EXPECT_EQ(count_of(all, at, sbh / tokens), 2) << "masks behind attention and MLP";
    EXPECT_EQ(count_of(all, at, 2 * sbh / tokens), 2) << "inputs of norm 2 and of the next layer's norm 1";
    EXPECT_EQ(count_of(all, at + ".norm2", 2 * sbh / tokens), 1) << "input of fc1";
    EXPECT_EQ(count_of(all, at + ".up", 8 * sbh / two), 1) << "input of GeLU";
    EXPECT_EQ(count_of(all, at, 8 * sbh / two), 1) << "input of fc2";
  }
}

// A Llama with grouped heads, flash attention and no dropout: without sequence parallelism inputs of norms and of
// products by column are whole; Q, K, V, O and all of the MLP's width are divided. Megatron-LM has one product for Q, K
// and V and one for gate and up, torchtitan has one for each.
TEST(KeptActivations, GroupedHeadsAndGatedMlp) {
  Model m = small_rotary_decoder();
  m.layers = 3, m.heads = 8, m.key_value_heads = 4, m.width = 128, m.inner = 320;
  m.rotary_in_fp32 = false;
  const Bytes tokens = m.longest, width = m.width, whole = 2 * tokens * width;
  for (const std::int64_t tensor : {2, 4, 8}) {
    const Bytes groups = std::max<Bytes>(4 / tensor, 1);  // heads of keys and values: at least one on each rank
    const Bytes q = whole / tensor, keys = whole / 8 * groups, wide = 2 * tokens * 320 / tensor;
    Recipe recipe = parallel_recipe(tensor, 1);
    std::vector<KeptTensor> all = kept(generated_ranks(m, recipe).front());
    EXPECT_EQ(count_of(all, "layers.1.norm1", whole), 1) << tensor;
    EXPECT_EQ(count_of(all, "layers.1.norm2", whole), 1) << tensor;
    EXPECT_EQ(count_of(all, "layers.1.attention.qkv", q + 2 * keys), 1) << tensor;
    EXPECT_EQ(count_of(all, "layers.1.attention", q), 1) << tensor << ": what attention makes";
    EXPECT_EQ(count_of(all, "layers.1.mlp.gate_up", 2 * wide), 1) << tensor;
    EXPECT_EQ(count_of(all, "layers.1.mlp", wide), 1) << tensor << ": input of the last product";
    if (tensor > 4) continue;  // torchtitan repeats no heads
    recipe.parallel.framework = ParallelFramework::torchtitan;
    all = kept(generated_ranks(m, recipe).front());
    EXPECT_EQ(count_of(all, "layers.1.attention_norm", whole), 1) << tensor;
    EXPECT_EQ(count_of(all, "layers.1.mlp_norm", whole), 1) << tensor;
    EXPECT_EQ(count_of(all, "layers.1.attention.v", keys), 1) << tensor;
    EXPECT_EQ(count_of(all, "layers.1.mlp.gate", wide), 1) << tensor;
    EXPECT_EQ(count_of(all, "layers.1.mlp.up", wide), 1) << tensor;
  }
}

// --- several micro-batches in flight

// Stage 0 of eight, twelve layers each (G3), and the same of every other stage: min(p - i, m) of them.
TEST(KeptActivations, MicroBatchesInFlight) {
  const Kind kind{true, true};
  const std::vector<Trace> ranks = generated_ranks(gpt_with_dropout(96), recipe_of(kind, t, 8, 10));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto in_flight = static_cast<Bytes>(8 - i);
    const std::vector<KeptTensor> all = kept(ranks[i]);
    Bytes layers = 0;
    for (std::size_t layer = 12 * i; layer < 12 * (i + 1); ++layer)
      layers += sum_of(all, fmt::format("layers.{}.", layer)) + sum_of(all, fmt::format("layers.{} ", layer));
    for (const KeptTensor& one : all)  // masks and sums are the layer's own; the last one's sum has been sent
      if (starts_with(one.module, "layers.") && one.module.find('.', 7) == std::string::npos) layers += one.bytes;
    // The first layer's input: made by the embedding's dropout, or received.
    layers += in_flight * 2 * sbh / t;
    if (i == 7) layers -= in_flight * 2 * sbh / t;  // kept by the last norm
    EXPECT_EQ(layers, in_flight * 12 * (106'954'752 + beside(kind, t))) << "stage " << i;
    if (i > 0) continue;
    EXPECT_EQ(layers - in_flight * 12 * beside(kind, t), 10'267'656'192);
  }
}

// All that an interior stage keeps where its first backward pass begins, to the byte: layers in flight, and the
// gradient that has just come.
TEST(KeptActivations, AnInteriorStageKeepsNothingElse) {
  const Kind kind{true, true};
  for (const bool deallocate : {true, false}) {
    Recipe recipe = recipe_of(kind, t, 4, 8);
    recipe.parallel.deallocate_outputs = deallocate;
    const std::vector<Trace> ranks = generated_ranks(gpt_with_dropout(8), recipe);
    for (std::size_t i = 1; i < 3; ++i) {
      const auto in_flight = static_cast<Bytes>(4 - i);
      Bytes sum = 0;
      for (const KeptTensor& one : kept(ranks[i])) sum += one.bytes;
      const Bytes message = 2 * sbh / t;
      EXPECT_EQ(sum, in_flight * 2 * (106'954'752 + beside(kind, t)) + message + (deallocate ? 0 : in_flight * message))
          << "stage " << i;
    }
  }
}

// The most micro-batches of a layer that live at once, in every schedule.
TEST(KeptActivations, PeaksInFlightAreTheOrders) {
  struct Case {
    std::int64_t p, v, m, n;
  };
  for (const Case& c : {Case{4, 1, 8, 0}, {4, 1, 2, 0}, {4, 2, 8, 0}, {4, 2, 12, 6}, {3, 3, 6, 0}, {2, 2, 4, 0}}) {
    Recipe recipe = parallel_recipe(2, c.p, c.v, c.m);
    recipe.parallel.microbatch_group = c.n;
    const std::vector<Trace> ranks = generated_ranks(small_gpt(c.p * c.v), recipe);
    const Bytes bytes = 2 * 32 * 64;  // what norm 2 makes
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      std::map<StorageId, bool> live;
      std::size_t most = 0;
      for (const Op& op : ranks[i].ops) {
        if (op.kind == OpKind::free) live.erase(op.target);
        if (op.kind != OpKind::alloc) continue;
        const std::string& module = ranks[i].strings[op.module];
        if (module.size() > 6 && module.ends_with(".norm2") && op.phase == Phase::forward &&
            ranks[i].storages[op.target].bytes == bytes)
          live[op.target] = true;
        most = std::max(most, live.size());
      }
      const PipelineShape shape{c.p, c.v, c.m, c.n};
      EXPECT_EQ(static_cast<std::int64_t>(most),
                most_in_flight(pipeline_order(PipelineSchedule::one_f_one_b, shape, static_cast<std::int64_t>(i))))
          << fmt::format("p {} v {} m {} N {} rank {}", c.p, c.v, c.m, c.n, i);
    }
  }
}

// --- recomputation

Bytes kept_of_layers(const Trace& rank) { return sum_of(kept(rank), "layers."); }

// Full: the input of each checkpoint alone, divided with sequence parallelism.
TEST(KeptActivations, FullRecomputationKeepsInputs) {
  for (const bool sequence_parallel : {false, true}) {
    Recipe recipe = recipe_of({sequence_parallel, true}, t, 2, 2);
    recipe.checkpoint = ActivationCheckpoint::full;
    const Bytes input = 2 * sbh / (sequence_parallel ? t : 1);
    for (const std::int64_t run : {1, 2, 3}) {
      recipe.parallel.checkpoint_layers = run;
      const Trace first = generated_ranks(gpt_with_dropout(12), recipe).front();
      // Two in flight; of six layers every run's last one's result, but the last of all, which is sent. The first's
      // input is the embedding's.
      EXPECT_EQ(kept_of_layers(first), 2 * (6 / run - 1) * input) << run;
    }
  }
  EXPECT_EQ(2 * sbh / t, 6'291'456);
}

// Block: the first layers of each chunk, the others keep all.
TEST(KeptActivations, BlockRecomputationCountsWithinChunks) {
  const auto recomputed = [](std::int64_t interleave, std::int64_t layers) {
    Recipe recipe = parallel_recipe(2, 2, interleave, 4);
    recipe.checkpoint = ActivationCheckpoint::full;
    recipe.parallel.checkpoint_method = CheckpointMethod::block;
    recipe.parallel.checkpoint_layers = layers;
    std::vector<std::map<std::string, int>> found;
    for (const Trace& rank : generated_ranks(small_gpt(12), recipe)) {
      found.emplace_back();
      for (const Op& op : rank.ops) {
        const std::string& module = rank.strings[op.module];
        if (op.kind == OpKind::kernel && op.phase == Phase::recompute && module.ends_with(".norm1"))
          ++found.back()[module.substr(7, module.find('.', 7) - 7)];
      }
    }
    return found;
  };
  using Layers = std::vector<std::map<std::string, int>>;
  EXPECT_EQ(recomputed(1, 2), (Layers{{{"0", 4}, {"1", 4}}, {{"6", 4}, {"7", 4}}}));
  EXPECT_EQ(recomputed(3, 1), (Layers{{{"0", 4}, {"4", 4}, {"8", 4}}, {{"2", 4}, {"6", 4}, {"10", 4}}}));
  EXPECT_EQ(recomputed(1, 99).front().size(), 6u);
}

// --- the last stage (G4)

TEST(KeptActivations, LogitsOfTheLastStage) {
  const std::vector<Trace> ranks = generated_ranks(gpt_with_dropout(8), recipe_of({true, true}, t, 8, 8));
  const std::vector<KeptTensor> all = kept(ranks.back());
  const Bytes logits = 2 * s * b * V / t, softmax = 2 * logits;
  EXPECT_EQ(logits, 26'214'400);
  EXPECT_EQ(count_of(all, "", softmax), 1) << "fp32, the softmax in place";
  EXPECT_EQ(count_of(all, "", 8 * s * b), 1) << "targets of this rank";
  EXPECT_EQ(count_of(all, "", s * b), 1) << "which targets are of this rank";
  EXPECT_EQ(count_of(all, "norm", 2 * sbh / t), 1) << "input of the head; that of the norm is the last layer's sum";
  // Logits beside their fp32 copy in forward, their gradient beside it in backward.
  Bytes copies = 0;
  for (const Op& op : ranks.back().ops)
    if (op.kind == OpKind::alloc && ranks.back().storages[op.target].bytes == logits) ++copies;
  EXPECT_EQ(copies, 2 * 8);
  for (std::size_t i = 0; i + 1 < ranks.size(); ++i) EXPECT_EQ(count_of(kept(ranks[i]), "", softmax), 0) << i;
}

TEST(KeptActivations, TheHeadIsAThirdOfALayer) {
  const Trace last = generated_ranks(gpt3(2), recipe_of({true, true}, t, 2, 2)).back();
  std::map<std::string, double> flops;
  for (const Op& op : last.ops)
    if (op.phase == Phase::forward && op.kind == OpKind::kernel &&
        (op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::attention))
      flops[last.strings[op.module].substr(0, 6)] += op.flops;
  EXPECT_DOUBLE_EQ(flops.at("head") / flops.at("layers"), V / (12.0 * h * (1 + s / (6.0 * h))));
  EXPECT_NEAR(flops.at("head") / flops.at("layers"), 0.3378, 0.0001);
}

// First, interior and last stages hold what the rules say, and nobody else does.
TEST(KeptActivations, StagesDiffer) {
  const std::vector<Trace> ranks = generated_ranks(gpt_with_dropout(8), recipe_of({true, true}, t, 4, 8));
  std::vector<Bytes> peaks;
  for (const Trace& rank : ranks) {
    Bytes most = 0;
    for (const LiveBytes& live : live_bytes(rank)) most = std::max(most, of(live, StorageKind::activation));
    peaks.push_back(most);
  }
  EXPECT_GT(peaks[0], peaks[1]);
  EXPECT_GT(peaks[1], peaks[2]);
  const auto masks = [&](std::size_t i) { return count_of(kept(ranks[i]), "dropout", sbh / t); };
  EXPECT_EQ(masks(0), 4) << "of the embedding, one for each in flight";
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(masks(i), 0) << i;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
