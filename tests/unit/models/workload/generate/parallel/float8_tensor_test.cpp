// torchtitan's float8 over tensor-parallel ranks: what is gathered is fp8, sums are not, every cast agrees on a number;
// and its loss, of which several tensors of the logits' size live at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "sim/policy/registry.h"
#include "sim/trace/group_names.h"
#include "sim/trace/trace_check.h"
#include "tests/support/parallel_ranks.h"
#include "tests/support/races.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::int64_t kTensor = 4, kLayers = 3, kWidth = 256, kTokens = 64, kVocabulary = 1024;

Model llama() {
  Model m = small_gpt(kLayers);
  m.normalization = Normalization::rms_norm, m.activation = Activation::swiglu, m.positions = Positions::rotary;
  m.bias = m.joint_query_key_value = m.tied_embedding = false;
  m.width = kWidth, m.inner = 4 * kWidth, m.longest = kTokens, m.vocabulary = kVocabulary, m.heads = 4;
  return m;
}

Recipe titan(Precision precision, bool async = false) {
  Recipe r;
  r.precision = precision;
  r.parallel.framework = ParallelFramework::torchtitan;
  r.parallel.tensor = kTensor;
  r.parallel.sequence_parallel = true;
  r.parallel.async_tensor_parallel = async;
  return r;
}

Trace rank_of(const Recipe& recipe) { return generated_ranks(llama(), recipe).front(); }

struct Sent {
  std::size_t messages = 0;
  Bytes bytes = 0;
};

Sent sent_in_layer(const Trace& t, Phase phase, CollectiveKind kind, Bytes most = kTokens * kWidth * 2) {
  Sent sent;
  for (const Op& op : collectives_of(t, kTensorParallelGroup)) {
    if (!starts_with(t.strings[op.module], "layers.1") || op.phase != phase || op.collective != kind) continue;
    if (op.bytes > most) continue;
    ++sent.messages;
    sent.bytes += op.bytes;
  }
  return sent;
}

// Per layer: two inputs are gathered forward and two rows' gradients backward, in fp8; sums are scattered in 16 bits.
TEST(Float8Tensor, GathersAreFp8AndSumsAreNot) {
  const Trace plain = rank_of(titan(Precision::bf16));
  for (const bool async : {false, true}) {
    const Trace fp8 = rank_of(titan(Precision::fp8, async));
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      SCOPED_TRACE(std::string(to_string(phase)) + (async ? ", in pieces" : ""));
      const Sent wide = sent_in_layer(plain, phase, CollectiveKind::all_gather);
      const Sent narrow = sent_in_layer(fp8, phase, CollectiveKind::all_gather);
      EXPECT_EQ(wide.bytes, 2 * kTokens * kWidth * 2 * (kTensor - 1) / kTensor);
      EXPECT_NEAR(narrow.bytes, wide.bytes / 2, 2 * kTensor);
      EXPECT_EQ(narrow.messages, async ? 2 * (kTensor - 1) : 2);
      EXPECT_NEAR(sent_in_layer(fp8, phase, CollectiveKind::reduce_scatter).bytes,
                  sent_in_layer(plain, phase, CollectiveKind::reduce_scatter).bytes, 2 * kTensor);
    }
  }
}

// Forward casts two inputs of columns, two of rows and seven weights; backward seven gradients and the weights again.
TEST(Float8Tensor, EveryCastAllReducesANumber) {
  const Trace t = rank_of(titan(Precision::fp8));
  const Bytes one = 2 * (2 * (kTensor - 1) / kTensor);  // of 2 bytes, sent in a ring in whole bytes
  for (const auto& [phase, casts] : {std::pair(Phase::forward, 11u), std::pair(Phase::backward, 14u)}) {
    const Sent sent = sent_in_layer(t, phase, CollectiveKind::all_reduce, one);  // gradients of norms besides
    EXPECT_EQ(sent.messages, casts);
    EXPECT_EQ(sent.bytes, casts * one);
  }
}

TEST(Float8Tensor, ProductsAreThoseOfSixteenBitsInFp8) {
  const auto flops = [](const Trace& t, DataType type, bool in_head) {
    double sum = 0;
    for (const Op& op : t.ops)
      if (op.operator_class == OperatorClass::gemm && op.data_type == type &&
          (t.strings[op.module] == "head") == in_head)
        sum += op.flops;
    return sum;
  };
  const Trace plain = rank_of(titan(Precision::bf16));
  for (const bool async : {false, true}) {
    const Trace fp8 = rank_of(titan(Precision::fp8, async));
    EXPECT_EQ(flops(fp8, DataType::fp8, false), flops(plain, DataType::bf16, false));
    EXPECT_EQ(flops(fp8, DataType::bf16, false), 0);
    EXPECT_EQ(flops(fp8, DataType::bf16, true), flops(plain, DataType::bf16, true));  // the output layer
  }
}

// Stages whose layers nobody shares: torchao's linear layers as on one GPU, with the products of all ranks together.
TEST(Float8Tensor, OneRankHasTheProductsOfAll) {
  const auto flops = [](const std::vector<Trace>& ranks) {
    double sum = 0;
    for (const Trace& t : ranks) {
      EXPECT_EQ(check(t), std::vector<std::string>{});
      for (const Op& op : t.ops)
        if (op.operator_class == OperatorClass::gemm && op.data_type == DataType::fp8) sum += op.flops;
    }
    return sum;
  };
  Recipe stages = titan(Precision::fp8);
  stages.parallel.tensor = 1, stages.parallel.pipeline = kLayers, stages.accumulation = kLayers;
  stages.parallel.sequence_parallel = false;
  EXPECT_EQ(flops(generated_ranks(llama(), stages)),
            kTensor * kLayers * flops(generated_ranks(llama(), titan(Precision::fp8))));
}

TEST(Float8Tensor, KeepsLessAndIsSound) {
  const auto kept = [](const Trace& t) {
    Bytes bytes = 0;
    for (const KeptTensor& one : kept_before(t, first_backward(t)))
      if (starts_with(one.module, "layers.1")) bytes += one.bytes;
    return bytes;
  };
  const Trace plain = rank_of(titan(Precision::bf16)), whole = rank_of(titan(Precision::fp8));
  EXPECT_LT(kept(whole), kept(plain));
  EXPECT_EQ(kept(whole), kept(rank_of(titan(Precision::fp8, true))));
  EXPECT_EQ(check(whole), std::vector<std::string>{});
  EXPECT_EQ(races(whole, 10'000), std::vector<std::string>{});
}

// Beside FSDP2, compiled blocks and torchtitan's checkpointing, as its float8 jobs run.
TEST(Float8Tensor, TakesWhatTorchtitanHasBesideIt) {
  const Machine machine = load_machine("hgx-h100");
  const Trace t = modelled_on(generate_step(llama(), titan(Precision::fp8, true)), machine);
  const Trace after = apply_rewriters(
      t, {parse_policy("fsdp:ranks=2"), parse_policy("compile:modules=layers.*"), parse_policy("torchtitan:mode=full")},
      machine, *make_pricer(machine));
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(early_frees(after), std::vector<std::string>{});
  std::map<std::pair<Phase, CollectiveKind>, Sent> in_layers;
  std::size_t gathers = 0, reductions = 0, eager = 0, compiled = 0;
  for (const Op& op : after.ops) {
    const bool of_layer = starts_with(after.strings[op.module], "layers.") && op.phase != Phase::optimizer;
    if (op.kind == OpKind::kernel && of_layer) ++(op.dispatch == Dispatch::compiled ? compiled : eager);
    if (op.kind != OpKind::collective || op.group >= after.groups.size()) continue;
    const bool of_replicas = after.groups[op.group].name.starts_with(kDataParallelGroup);
    gathers += of_replicas && op.collective == CollectiveKind::all_gather;
    reductions += of_replicas && op.collective == CollectiveKind::reduce_scatter;
    if (of_replicas || !of_layer) continue;
    Sent& sent = in_layers[{op.phase, op.collective}];
    ++sent.messages;
    sent.bytes += op.bytes;
  }
  // FSDP2: each layer is gathered for forward, and for the re-run and backward together; what stands around them once.
  EXPECT_EQ(gathers, static_cast<std::size_t>(2 * kLayers + 1));
  EXPECT_EQ(reductions, static_cast<std::size_t>(kLayers + 1));
  EXPECT_GT(compiled, 0u);
  EXPECT_EQ(eager, 0u);
  // torchtitan's checkpointing: both columns' tokens are gathered again, in fp8; the sum of the first row, in 16 bits,
  // is made again, and the last, which only the next layer reads, is not.
  const Bytes shared = kTokens * kWidth * (kTensor - 1) / kTensor, pieces = kTensor - 1;
  const Sent tokens = in_layers[{Phase::recompute, CollectiveKind::all_gather}],
             sums = in_layers[{Phase::recompute, CollectiveKind::reduce_scatter}];
  EXPECT_EQ(tokens.messages, static_cast<std::size_t>(kLayers * 2 * pieces));
  EXPECT_NEAR(tokens.bytes, kLayers * 2 * shared, kLayers * 2 * pieces);
  EXPECT_EQ(sums.messages, static_cast<std::size_t>(kLayers * pieces));
  EXPECT_NEAR(sums.bytes, kLayers * 2 * shared, kLayers * pieces);
}

// Three tensors of the logits' size, in fp32, live at once in forward, four in backward; one from forward to backward.
TEST(LossParallel, TensorsOfTheLogitsSize) {
  const Trace t = rank_of(titan(Precision::bf16));
  const Bytes logits = kTokens * kVocabulary / kTensor * 4;
  std::map<Phase, int> most;
  int live = 0, at_backward = -1;
  for (const Op& op : t.ops) {
    if (op.phase == Phase::backward && at_backward < 0) at_backward = live;
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    if (t.storages[op.target].bytes != logits || starts_with(t.strings[op.module], "layers.")) continue;
    live += op.kind == OpKind::alloc ? 1 : -1;
    most[op.phase] = std::max(most[op.phase], live);
  }
  EXPECT_EQ(most[Phase::forward], 3);
  EXPECT_EQ(at_backward, 1);
  EXPECT_EQ(most[Phase::backward], 4);
}

TEST(LossParallel, AllReducesThreeNumbersPerRowInForwardAlone) {
  const Trace t = rank_of(titan(Precision::bf16));
  std::vector<Bytes> sent;
  for (const Op& op : collectives_of(t, kTensorParallelGroup))
    if (t.strings[op.module].empty() && op.collective == CollectiveKind::all_reduce && op.phase != Phase::optimizer) {
      EXPECT_EQ(op.phase, Phase::forward);
      sent.push_back(op.bytes);
    }
  EXPECT_EQ(sent, std::vector<Bytes>(3, 2 * kTokens * 4 * (kTensor - 1) / kTensor));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
