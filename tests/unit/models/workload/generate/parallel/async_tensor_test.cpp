// torchtitan's async tensor parallelism: products in pieces beside their own messages, with the same products and bytes
// in all; and how torchtitan's checkpointing counts the pieces.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/group_names.h"
#include "sim/trace/trace_check.h"
#include "tests/support/parallel_ranks.h"
#include "tests/support/races.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::int64_t kTensor = 4, kLayers = 3;

Model llama(bool biases = false) {
  Model m = small_gpt(kLayers);
  m.normalization = Normalization::rms_norm, m.activation = Activation::swiglu, m.positions = Positions::rotary;
  m.bias = m.joint_query_key_value = m.tied_embedding = false;
  m.query_key_value_bias = biases;
  m.vocabulary = 256;
  return m;
}

Recipe titan(bool async) {
  Recipe r;
  r.precision = Precision::bf16;
  r.parallel.framework = ParallelFramework::torchtitan;
  r.parallel.tensor = kTensor;
  r.parallel.sequence_parallel = true;
  r.parallel.async_tensor_parallel = async;
  return r;
}

Trace rank_of(const Recipe& recipe, const Model& model = llama()) { return generated_ranks(model, recipe).front(); }

bool is_in_layer(const Trace& t, const Op& op) { return starts_with(t.strings[op.module], "layers.1"); }

std::vector<Bytes> sent_in_layer(const Trace& t, Phase phase, CollectiveKind kind) {
  std::vector<Bytes> sent;
  for (const Op& op : collectives_of(t, kTensorParallelGroup))
    if (is_in_layer(t, op) && op.phase == phase && op.collective == kind) sent.push_back(op.bytes);
  return sent;
}

Bytes sum(const std::vector<Bytes>& all) {
  Bytes total = 0;
  for (const Bytes bytes : all) total += bytes;
  return total;
}

int products_in_layer(const Trace& t, Phase phase) {
  int count = 0;
  for (const Op& op : t.ops)
    count += is_in_layer(t, op) && op.phase == phase && op.operator_class == OperatorClass::gemm;
  return count;
}

double product_flops(const Trace& t) {
  double flops = 0;
  for (const Op& op : t.ops)
    if (op.operator_class == OperatorClass::gemm) flops += op.flops;
  return flops;
}

// Forward: both gathers and both sums in t - 1 transfers; backward: the gathers of rows' gradients, while the sums of
// columns' come whole. The output layer, which nobody compiles, gathers whole.
TEST(AsyncTensorParallel, TheSameMessagesInPieces) {
  const Trace whole = rank_of(titan(false)), pieces = rank_of(titan(true));
  constexpr std::size_t kPieces = kTensor - 1;
  struct Expected {
    Phase phase;
    CollectiveKind kind;
    std::size_t whole, pieces;
  };
  for (const auto& [phase, kind, one, many] : {Expected{Phase::forward, CollectiveKind::all_gather, 2, 2 * kPieces},
                                               Expected{Phase::forward, CollectiveKind::reduce_scatter, 2, 2 * kPieces},
                                               Expected{Phase::backward, CollectiveKind::all_gather, 2, 2 * kPieces},
                                               Expected{Phase::backward, CollectiveKind::reduce_scatter, 2, 2}}) {
    const std::vector<Bytes> all = sent_in_layer(whole, phase, kind), parts = sent_in_layer(pieces, phase, kind);
    EXPECT_EQ(all.size(), one) << to_string(phase) << " " << to_string(kind);
    EXPECT_EQ(parts.size(), many) << to_string(phase) << " " << to_string(kind);
    EXPECT_NEAR(sum(all), sum(parts), 2 * kTensor);
  }
  const auto of_head = [](const Trace& t) {
    std::size_t n = 0;
    for (const Op& op : collectives_of(t, kTensorParallelGroup)) n += t.strings[op.module] == "head";
    return n;
  };
  EXPECT_EQ(of_head(whole), of_head(pieces));
  EXPECT_EQ(of_head(whole), 2u) << "its input is gathered once and kept, its gradient scattered";
}

// 7 products forward, in 4 pieces each; 14 backward, of which those of the two rows' inputs are in pieces.
TEST(AsyncTensorParallel, TheSameProductsInPieces) {
  const Trace whole = rank_of(titan(false)), pieces = rank_of(titan(true));
  EXPECT_EQ(products_in_layer(whole, Phase::forward), 7);
  EXPECT_EQ(products_in_layer(pieces, Phase::forward), 7 * kTensor);
  EXPECT_EQ(products_in_layer(whole, Phase::backward), 14);
  EXPECT_EQ(products_in_layer(pieces, Phase::backward), 12 + 2 * kTensor);
  EXPECT_EQ(product_flops(whole), product_flops(pieces));
}

// What autograd keeps of a layer is the same: the gathered tokens once for all that read them.
TEST(AsyncTensorParallel, KeepsTheSame) {
  const auto kept = [](const Trace& t) {
    Bytes bytes = 0;
    for (const KeptTensor& one : kept_before(t, first_backward(t)))
      if (starts_with(one.module, "layers.1")) bytes += one.bytes;
    return bytes;
  };
  for (const bool biases : {false, true})
    EXPECT_EQ(kept(rank_of(titan(false), llama(biases))), kept(rank_of(titan(true), llama(biases))));
}

// Of products in pieces no races are asked: pieces are parts of one storage, of which some arrive while others are
// multiplied.
TEST(AsyncTensorParallel, IsSoundAndHidesMessages) {
  const Machine machine = test_machine();
  Model model = llama();
  model.width = 1024, model.inner = 4096, model.longest = 1024;
  Duration spans[2];
  for (const bool async : {false, true}) {
    const Trace t = modelled_on(generate_step(model, titan(async)), machine);
    EXPECT_EQ(check(t), std::vector<std::string>{});
    if (!async) {
      EXPECT_EQ(races(t), std::vector<std::string>{});
    }
    spans[async] = simulate(t, machine, {}).gpu_span;
  }
  EXPECT_LT(spans[1], spans[0]);
}

// Of products in pieces every second runs again, whole, as of products in one piece; sums that left in pieces are kept
// as they are where they came together, not as the pieces.
TEST(AsyncTensorParallel, CheckpointingCountsPiecesAsOne) {
  const Machine machine = test_machine();
  const auto again = [&](bool async) {
    const Trace t = modelled_on(generate_step(llama(), titan(async)), machine);
    return apply_rewriters(t, {parse_policy("torchtitan:mode=selective")}, machine, *make_pricer(machine));
  };
  const auto rerun = [](const Trace& t, OperatorClass kind) {
    double flops = 0;
    for (const Op& op : t.ops)
      if (op.phase == Phase::recompute && op.operator_class == kind) flops += op.flops;
    return flops;
  };
  const Trace whole = again(false), pieces = again(true);
  EXPECT_GT(rerun(whole, OperatorClass::gemm), 0);
  EXPECT_EQ(rerun(whole, OperatorClass::gemm), rerun(pieces, OperatorClass::gemm));
  for (const Op& op : pieces.ops)
    if (op.phase == Phase::recompute && op.kind == OpKind::collective) {
      EXPECT_NE(op.collective, CollectiveKind::reduce_scatter);
    }
  EXPECT_EQ(races(whole), std::vector<std::string>{});
}

TEST(AsyncTensorParallel, IsRefusedWhereTorchtitanHasNone) {
  const auto refusal = [](const Recipe& recipe) -> std::string {
    try {
      generate_step(llama(), recipe);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "taken";
  };
  Recipe no_tokens = titan(true), megatron = titan(true);
  no_tokens.parallel.sequence_parallel = false;
  megatron.parallel.framework = ParallelFramework::megatron;
  for (const Recipe& recipe : {no_tokens, megatron})
    EXPECT_NE(refusal(recipe).find("async_tensor_parallel is torchtitan's"), std::string::npos) << refusal(recipe);
  Recipe keys = titan(false);
  Model model = llama();
  model.key_value_heads = 2;
  keys.parallel.tensor = 4;
  try {
    generate_step(model, keys);
    ADD_FAILURE() << "taken";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("2 heads of keys and values, as torchtitan's layers need; expected 2."),
              std::string::npos)
        << error.what();
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
