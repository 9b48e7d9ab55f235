// What ranks of a parallel job send: per layer, per step, per message (../shared/spec/parallelism.md, 2.1, 2.6, 3.4,
// G2, G9b, G13, G18). Op::bytes of a collective is what its rank sends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "tests/support/parallel_ranks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// G2's layer: two tokens of four elements on two ranks.
Model two_tokens(std::int64_t layers) {
  Model m = small_gpt(layers);
  m.width = 4, m.heads = 2, m.longest = 2, m.vocabulary = 256;
  return m;
}

// Heads of two elements: flash attention has none.
Recipe plain_recipe(std::int64_t tensor, std::int64_t pipeline) {
  Recipe recipe = parallel_recipe(tensor, pipeline);
  recipe.attention = Attention::plain;
  return recipe;
}

using Found = std::map<std::pair<CollectiveKind, Phase>, std::vector<Bytes>>;

// Of one micro-batch in one layer, in order.
Found of_layer(const Recipe& recipe) {
  Found found;
  const Trace step = generated_ranks(two_tokens(3), recipe).front();
  for (const Op& op : collectives_of(step, "tensor parallel"))
    if (starts_with(step.strings[op.module], "layers.1")) found[{op.collective, op.phase}].push_back(op.bytes);
  return found;
}

Bytes sum(const Found& found) {
  Bytes all = 0;
  for (const auto& [what, bytes] : found)
    for (const Bytes one : bytes) all += one;
  return all;
}

TEST(CollectiveBytes, OfALayerWithTensorParallelism) {
  const Found found = of_layer(plain_recipe(2, 1));
  const Bytes message = 2 * 1 * 4 * 2, reduced = 2 * message / 2;
  EXPECT_EQ(found, (Found{{{CollectiveKind::all_reduce, Phase::forward}, {reduced, reduced}},
                          {{CollectiveKind::all_reduce, Phase::backward}, {reduced, reduced}}}));
  EXPECT_EQ(sum(found), 64);
}

TEST(CollectiveBytes, OfALayerWithSequenceParallelism) {
  Recipe recipe = plain_recipe(2, 1);
  recipe.parallel.sequence_parallel = true;
  const Found found = of_layer(recipe);
  const Bytes half = 8;
  EXPECT_EQ(found, (Found{{{CollectiveKind::all_gather, Phase::forward}, {half, half}},
                          {{CollectiveKind::reduce_scatter, Phase::forward}, {half, half}},
                          {{CollectiveKind::all_gather, Phase::backward}, {half, half, half, half}},
                          {{CollectiveKind::reduce_scatter, Phase::backward}, {half, half}}}));
  EXPECT_EQ(sum(found), 80);
}

// Recomputing a layer communicates as its forward pass does, recomputing attention's scores nothing.
TEST(CollectiveBytes, OfRecomputation) {
  for (const bool sequence_parallel : {false, true}) {
    Recipe recipe = plain_recipe(2, 1);
    recipe.parallel.sequence_parallel = sequence_parallel;
    const Bytes plain = sum(of_layer(recipe));
    recipe.checkpoint = ActivationCheckpoint::full;
    EXPECT_EQ(sum(of_layer(recipe)), plain + 32);
    recipe.checkpoint = ActivationCheckpoint::selective;
    EXPECT_EQ(sum(of_layer(recipe)), plain);
  }
}

// Embedding, head and loss.
TEST(CollectiveBytes, OfFirstAndLastStage) {
  for (const bool sequence_parallel : {false, true}) {
    Recipe recipe = plain_recipe(2, 2);
    recipe.parallel.sequence_parallel = sequence_parallel;
    recipe.optimizer = OptimizerKind::none;
    const std::vector<Trace> ranks = generated_ranks(two_tokens(2), recipe);
    const auto outside = [&](const Trace& rank, Phase phase) {
      std::vector<std::pair<CollectiveKind, Bytes>> found;
      for (const Op& op : collectives_of(rank, "tensor parallel"))
        if (op.phase == phase && !starts_with(rank.strings[op.module], "layers."))
          found.push_back({op.collective, op.bytes});
      return found;
    };
    using List = std::vector<std::pair<CollectiveKind, Bytes>>;
    const Bytes words = 2 * 8, message = 16, each = 2 * 4;
    // Tokens and positions, targets and the loss' mask, from the first rank of the group; learned positions need all
    // tokens' sums.
    EXPECT_EQ(outside(ranks[0], Phase::forward), (List{{CollectiveKind::broadcast, words},
                                                       {CollectiveKind::broadcast, words},
                                                       {CollectiveKind::all_reduce, message}}));
    List backward, last{{CollectiveKind::broadcast, words}, {CollectiveKind::broadcast, words / 2}}, last_backward;
    if (sequence_parallel) {
      // Behind backward: gradients of norms and of rows' biases, 6 h of each layer.
      backward = {{CollectiveKind::all_gather, message / 2}, {CollectiveKind::all_reduce, 6 * 4 * 2}};
      last.push_back({CollectiveKind::all_gather, message / 2});
      last_backward = {{CollectiveKind::all_gather, message / 2},
                       {CollectiveKind::reduce_scatter, message / 2},
                       {CollectiveKind::all_reduce, (6 + 2) * 4 * 2}};
    } else {
      last_backward = {{CollectiveKind::all_reduce, message}};
    }
    for (int i = 0; i < 3; ++i) last.push_back({CollectiveKind::all_reduce, each});  // maxima, targets, sums
    EXPECT_EQ(outside(ranks[0], Phase::backward), backward) << sequence_parallel;
    EXPECT_EQ(outside(ranks[1], Phase::forward), last) << sequence_parallel;
    EXPECT_EQ(outside(ranks[1], Phase::backward), last_backward) << sequence_parallel;
  }
}

// Rotary positions: each rank gets its own tokens' sums at once.
TEST(CollectiveBytes, WithoutLearnedPositionsTheEmbeddingIsScattered) {
  Model llama = small_rotary_decoder();
  llama.vocabulary = 256;
  Recipe recipe = parallel_recipe(2, 2);
  recipe.parallel.sequence_parallel = true;
  const Trace first = generated_ranks(llama, recipe).front();
  std::vector<CollectiveKind> found;
  for (const Op& op : collectives_of(first, "tensor parallel"))
    if (op.phase == Phase::forward && !starts_with(first.strings[op.module], "layers.")) found.push_back(op.collective);
  EXPECT_EQ(found, (std::vector<CollectiveKind>{CollectiveKind::broadcast, CollectiveKind::broadcast,
                                                CollectiveKind::reduce_scatter}));
}

// With gradients in fp32 the sum over ranks of those that saw their own tokens is in fp32, too: 96 B of a layer.
TEST(CollectiveBytes, OfGradientsByTokens) {
  Recipe recipe = plain_recipe(2, 3);
  recipe.parallel.sequence_parallel = true;
  recipe.parallel.main_gradients = MainGradients::fp32;
  const Trace interior = generated_ranks(two_tokens(3), recipe)[1];
  const std::vector<Op> all = collectives_of(interior, "tensor parallel");
  const auto at = std::find_if(all.begin(), all.end(), [](const Op& op) {
    return op.collective == CollectiveKind::all_reduce && op.phase == Phase::backward;
  });
  ASSERT_NE(at, all.end());
  EXPECT_EQ(at->bytes, 96);  // 2 x 1/2 of them
}

// --- messages (G13)

TEST(CollectiveBytes, OfMessages) {
  for (const bool sequence_parallel : {false, true})
    for (const std::int64_t interleave : {1, 2}) {
      Recipe recipe = parallel_recipe(8, 4, interleave, 8);
      recipe.parallel.sequence_parallel = sequence_parallel;
      recipe.checkpoint = ActivationCheckpoint::full;
      const std::vector<Trace> ranks = generated_ranks(gpt3(8), recipe);
      const Bytes message = sequence_parallel ? 6'291'456 : 50'331'648;
      for (std::size_t i = 0; i < 4; ++i) {
        Bytes sent = 0;
        for (const Op& op : collectives_of(ranks[i], "pipeline")) {
          EXPECT_EQ(op.bytes % message, 0);
          sent += op.bytes;
        }
        Bytes count = 16 * interleave;  // each way as many as passes
        if (i == 0) count -= 8;         // gradients go nowhere behind the first stage,
        if (i == 3) count -= 8;         // outputs nowhere behind the last
        EXPECT_EQ(sent, count * message) << fmt::format("rank {} v {}", i, interleave);
      }
    }
}

// --- data parallelism (G9b) and the whole step (G18)

// A rank's traffic in a step, by group, of an interior stage of GPT-3 on 512 GPUs.
TEST(CollectiveBytes, OfAStepOfGpt3) {
  Recipe recipe = parallel_recipe(8, 8, 1, 64);
  recipe.data_parallel = 8;
  recipe.parallel.sequence_parallel = true;
  recipe.parallel.main_gradients = MainGradients::fp32_fused;
  recipe.parallel.distributed_optimizer = true;
  const Trace interior = generated_ranks(gpt3(), recipe)[3];
  std::map<std::string, Bytes> sent;
  Bytes layers = 0;
  for (const Op& op : interior.ops) {
    if (op.kind != OpKind::collective) continue;
    sent[interior.groups[op.group].name] += op.bytes;
    if (interior.groups[op.group].name == "tensor parallel" && starts_with(interior.strings[op.module], "layers."))
      layers += op.bytes;
  }
  const Bytes message = 50'331'648, parameters = 2'718'922'752;
  EXPECT_EQ(layers, Bytes{12} * 64 * 10 * (message / 8 * 7));
  EXPECT_NEAR(static_cast<double>(layers), 338.2e9, 0.05e9);
  // What is left of it: gradients by tokens, 6 h of each layer in fp32.
  EXPECT_EQ(sent.at("tensor parallel") - layers, 2 * (Bytes{12} * 6 * 12288 * 4 / 8 * 7));
  EXPECT_EQ(sent.at("pipeline"), 2 * 64 * 6'291'456);
  EXPECT_NEAR(static_cast<double>(sent.at("pipeline")), 0.805e9, 0.001e9);
  EXPECT_EQ(sent.at("data parallel"), (4 + 2) * (parameters / 8 * 7));
  EXPECT_NEAR(static_cast<double>(sent.at("data parallel")), 14.27e9, 0.005e9);
  EXPECT_EQ(sent.count("embedding"), 0u);
}

TEST(CollectiveBytes, OfDataParallelismDoNotDependOnMicroBatches) {
  const auto sent = [](std::int64_t passes, bool distributed, bool overlapped) {
    Recipe recipe = parallel_recipe(2, 2, 1, passes);
    recipe.data_parallel = 4;
    recipe.parallel.main_gradients = MainGradients::fp32;
    recipe.parallel.distributed_optimizer = distributed;
    recipe.parallel.overlap_grad_reduce = overlapped;
    recipe.parallel.overlap_param_gather = overlapped && distributed;
    return sum_of_bytes(collectives_of(generated_ranks(small_gpt(4), recipe)[0], "data parallel"));
  };
  for (const bool overlapped : {false, true}) {
    EXPECT_EQ(sent(1, true, overlapped), sent(7, true, overlapped));
    EXPECT_EQ(sent(1, false, overlapped), sent(7, false, overlapped));
    // Scattered and gathered in 16 bits, or reduced: 4 + 2 against 8 bytes per element and (n - 1) / n.
    EXPECT_NEAR(static_cast<double>(sent(2, true, overlapped)) / static_cast<double>(sent(2, false, overlapped)), 0.75,
                0.001);
  }
}

// The gradient of a tied embedding: the whole share of first and last rank, in fp32 (G8).
TEST(CollectiveBytes, OfATiedEmbedding) {
  Recipe recipe = parallel_recipe(8, 8, 1, 8);
  recipe.data_parallel = 2;
  recipe.parallel.main_gradients = MainGradients::fp32_fused;
  recipe.parallel.distributed_optimizer = true;
  Model model = gpt3(8);
  const std::vector<Trace> ranks = generated_ranks(model, recipe);
  for (const std::size_t i : {0u, 7u}) {
    const std::vector<Op> found = collectives_of(ranks[i], "embedding");
    ASSERT_EQ(found.size(), 1u) << i;
    EXPECT_EQ(found.front().collective, CollectiveKind::all_reduce);
    EXPECT_EQ(found.front().bytes, 314'572'800) << i;  // over two ranks as much is sent as there is
    EXPECT_NE(found.front().target, kNoRendezvous);
  }
  for (std::size_t i = 1; i < 7; ++i) EXPECT_TRUE(collectives_of(ranks[i], "embedding").empty()) << i;
  model.tied_embedding = false;
  for (const Trace& rank : generated_ranks(model, recipe)) EXPECT_TRUE(collectives_of(rank, "embedding").empty());
}

// What backward of one module issues, in order: "I" and "W" (products for the input's and the weight's gradient), its
// collectives, and "wait" where the compute stream waits for those.
std::string order_of_backward(const Trace& rank, const std::string& module, std::int64_t tokens) {
  std::string order;
  for (const Op& op : rank.ops) {
    if (op.phase != Phase::backward || rank.strings[op.module] != module) continue;
    std::string what;
    if (op.operator_class == OperatorClass::gemm) what = rank.shapes[op.shape][3] == tokens ? "W" : "I";
    if (op.kind == OpKind::collective) what = to_string(op.collective);
    if (op.kind == OpKind::event_wait && op.stream == 0) what = "wait";
    if (!what.empty()) order += (order.empty() ? "" : ", ") + what;
  }
  return order;
}

// A column's gather hides behind I, its reduction behind W; a row's gather behind nothing (2.2).
TEST(CollectiveBytes, HideBehindProducts) {
  for (const bool sequence_parallel : {false, true}) {
    Recipe recipe = parallel_recipe(2, 2);
    recipe.parallel.sequence_parallel = sequence_parallel;
    Model model = small_gpt(2);
    model.bias = model.query_key_value_bias = false;
    const Trace rank = generated_ranks(model, recipe).front();
    const std::int64_t tokens = 32;
    const char* const column =
        sequence_parallel ? "all_gather, I, wait, reduce_scatter, W, wait" : "I, all_reduce, W, wait";
    EXPECT_EQ(order_of_backward(rank, "layers.0.attention.qkv", tokens), column);
    EXPECT_EQ(order_of_backward(rank, "layers.0.up", tokens), column);
    const char* const row = sequence_parallel ? "all_gather, wait, I, W" : "I, W";
    EXPECT_EQ(order_of_backward(rank, "layers.0.attention.out", tokens), row);
    EXPECT_EQ(order_of_backward(rank, "layers.0.down", tokens), row);
  }
}

// Where a group's members sit decides what goes through a network card (8.4, G12b): 2 x 15/16 of 1e9 bytes over eight
// cards where 16 ranks fill two nodes, 2 x 1/2 through one where two ranks have the same place in their nodes.
TEST(CollectiveBytes, PlacementDecidesTheBytesOfANetworkCard) {
  const Machine machine = load_machine("dgx-a100-80gb");
  const auto pricer = make_pricer(machine);
  std::vector<std::uint32_t> two_nodes(16);
  std::iota(two_nodes.begin(), two_nodes.end(), 0u);
  const auto seconds = [&](const ProcessGroup& group) {
    return to_seconds(pricer->collective(CollectiveKind::all_reduce, 1'000'000'000, group));
  };
  const double contiguous = seconds({"contiguous", 16, two_nodes}), strided = seconds({"strided", 2, {0, 8}});
  EXPECT_NEAR(strided / contiguous, 1e9 / 0.234375e9, 0.05 * 1e9 / 0.234375e9);
}

// A dropped collective shows in the sums.
TEST(CollectiveBytes, AMissingCollectiveIsFound) {
  Recipe recipe = plain_recipe(2, 1);
  Trace step = generated_ranks(two_tokens(3), recipe).front();
  const auto sum_of_layer = [&] {
    Bytes all = 0;
    for (const Op& op : collectives_of(step, "tensor parallel"))
      if (starts_with(step.strings[op.module], "layers.1")) all += op.bytes;
    return all;
  };
  ASSERT_EQ(sum_of_layer(), 64);
  const auto one = std::find_if(step.ops.begin(), step.ops.end(), [&](const Op& op) {
    return op.kind == OpKind::collective && starts_with(step.strings[op.module], "layers.1");
  });
  one->kind = OpKind::mark;
  EXPECT_EQ(sum_of_layer(), 48);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
