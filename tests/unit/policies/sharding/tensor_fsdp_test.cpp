// FSDP2 beside tensor parallelism, as torchtitan has it without a pipeline: are a rank's bytes P / (t d), its messages
// those of its shares, its groups every t-th rank, and the step of t = 1 the step that has no tensor parallelism?
// (../shared/spec/parallelism.md, 7.1; torch/distributed/fsdp/_fully_shard/.)
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/machine/group_place.h"
#include "sim/policy/registry.h"
#include "sim/trace/group_names.h"
#include "sim/trace/trace_check.h"
#include "tests/support/live_bytes.h"
#include "tests/support/parallel_ranks.h"
#include "tests/support/races.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::int64_t kLayers = 4, kWidth = 512, kInner = 1536, kVocabulary = 1024, kHeads = 8, kKeyHeads = 4;

// Every first dimension is a multiple of 32.
Model llama() {
  Model m;
  m.name = "small llama";
  m.architecture = Architecture::decoder;
  m.layers = kLayers, m.width = kWidth, m.heads = kHeads, m.key_value_heads = kKeyHeads, m.inner = kInner;
  m.vocabulary = kVocabulary, m.longest = 512;
  m.normalization = Normalization::rms_norm, m.activation = Activation::swiglu, m.positions = Positions::rotary;
  m.bias = m.query_key_value_bias = m.joint_query_key_value = m.tied_embedding = false;
  return m;
}

Bytes layer_elements(std::int64_t tensor) {
  const std::int64_t keys = kWidth / kHeads * kKeyHeads;
  return (2 * kWidth * kWidth + 2 * kWidth * keys + 3 * kWidth * kInner) / tensor + 2 * kWidth;
}
Bytes table_elements(std::int64_t tensor) { return kVocabulary * kWidth / tensor; }
Bytes all_elements(std::int64_t tensor) {
  return kLayers * layer_elements(tensor) + 2 * table_elements(tensor) + kWidth;
}

Recipe titan(std::int64_t tensor) {
  Recipe r;
  r.batch = 1;
  r.precision = Precision::bf16;
  r.master_parameters = true;
  r.optimizer_kernels = OptimizerKernels::fused;
  r.parallel.framework = ParallelFramework::torchtitan;
  r.parallel.tensor = tensor;
  r.parallel.sequence_parallel = tensor > 1;
  return r;
}

const Machine& machine() {
  static const Machine loaded = load_machine("dgx-a100-80gb");
  return loaded;
}

Trace step_of(const Recipe& recipe, const Model& model = llama()) {
  return modelled_on(generate_step(model, recipe), machine());
}

Trace under(const Trace& step, const std::vector<std::string>& policies) {
  std::vector<PolicySpec> specs;
  for (const std::string& policy : policies) specs.push_back(parse_policy(policy));
  return apply_rewriters(step, specs, machine(), *make_pricer(machine()));
}

std::string fsdp(std::int64_t ranks, const std::string& more = "") {
  return fmt::format("fsdp:ranks={},reduce_dtype=fp32{}", ranks, more);
}

bool is_of_replicas(const Trace& t, const Op& op) {
  return op.kind == OpKind::collective && op.group < t.groups.size() &&
         t.groups[op.group].name.starts_with(kDataParallelGroup);
}

// Bytes that a rank sends to those with the same share, by kind and in order.
std::map<CollectiveKind, std::vector<Bytes>> sent_to_replicas(const Trace& t) {
  std::map<CollectiveKind, std::vector<Bytes>> sent;
  for (const Op& op : t.ops)
    if (is_of_replicas(t, op)) sent[op.collective].push_back(op.bytes);
  return sent;
}

std::vector<Op> of_layers(const Trace& t, Phase phase) {
  std::vector<Op> found = collectives_of(t, kTensorParallelGroup);
  std::erase_if(found, [phase](const Op& op) { return op.phase != phase; });
  return found;
}

// 4 bytes of parameters and 8 of moments for each of P / (t d), 4 of gradients once they are reduced, and a counter
// of each parameter's steps.
TEST(TensorFsdp, ARankKeepsItsShareOfItsShare) {
  for (const std::int64_t tensor : {2, 4})
    for (const std::int64_t shards : {2, 4, 8}) {
      const Trace t = under(step_of(titan(tensor)), {fsdp(shards)});
      const Bytes own = all_elements(tensor) / shards, counters = 4 * (9 * kLayers + 3);
      const LiveBytes at_rest = live_bytes(t).front();
      EXPECT_EQ(of(at_rest, StorageKind::parameter), 4 * own);
      EXPECT_EQ(of(at_rest, StorageKind::optimizer_state), 8 * own + counters);
      EXPECT_EQ(of(at_rest, StorageKind::gradient), 0);
      EXPECT_EQ(model_state(live_bytes(t).back()), model_state(at_rest));
      Bytes gradients_in_update = 0;
      const std::vector<LiveBytes> live = live_bytes(t);
      for (std::size_t i = 0; i < t.ops.size(); ++i)
        if (t.ops[i].phase == Phase::optimizer)
          gradients_in_update = std::max(gradients_in_update, of(live[i], StorageKind::gradient));
      EXPECT_EQ(gradients_in_update, 4 * own);
      EXPECT_EQ(t.job_ranks, tensor * shards);
      EXPECT_EQ(t.rank_table.front().stands_for.size() + 1, static_cast<std::size_t>(tensor * shards));
      EXPECT_DOUBLE_EQ(t.samples_per_step, static_cast<double>(shards));
    }
}

// Each layer is gathered in forward and again in backward, in 16 bits; the embedding, the last norm and the output
// layer once; each is scattered once, in 32. Between every t-th rank.
TEST(TensorFsdp, MessagesAreThoseOfTheShares) {
  for (const std::int64_t tensor : {2, 4})
    for (const std::int64_t shards : {2, 8}) {
      const Trace t = under(step_of(titan(tensor)), {fsdp(shards)});
      auto sent = sent_to_replicas(t);
      const auto part = [shards](Bytes message) { return message / shards * (shards - 1); };
      const Bytes layer = layer_elements(tensor), root = 2 * table_elements(tensor) + kWidth;
      std::vector<Bytes> gathers(2 * kLayers, part(2 * layer)), scatters(kLayers, part(4 * layer));
      gathers.insert(gathers.begin(), part(2 * root));
      scatters.push_back(part(4 * root));
      EXPECT_EQ(sent[CollectiveKind::all_gather], gathers);
      EXPECT_EQ(sent[CollectiveKind::reduce_scatter], scatters);
      // The norms of all gradients, one number each.
      EXPECT_EQ(sent[CollectiveKind::all_reduce],
                (std::vector<Bytes>{2 * 4 * (9 * kLayers + 3) / shards * (shards - 1)}));
      for (const Op& op : t.ops) {
        if (!is_of_replicas(t, op)) continue;
        std::vector<std::uint32_t> members;
        for (std::int64_t i = 0; i < shards; ++i) members.push_back(static_cast<std::uint32_t>(i * tensor));
        EXPECT_EQ(t.groups[op.group].members, members);
      }
    }
}

// The norms of layers and the last norm saw this rank's tokens alone: FSDP2 takes their sum, one all-reduce each,
// before it reduces the layer. The norms of gradients are summed over these ranks, too.
TEST(TensorFsdp, NormsAreSummedOverTheRanksThatShareTokens) {
  constexpr std::int64_t kTensor = 4, kShards = 2;
  for (const std::int64_t passes : {1, 3}) {
    Recipe recipe = titan(kTensor);
    recipe.accumulation = passes;
    const Trace t = under(step_of(recipe), {fsdp(kShards)});
    std::vector<Bytes> backward;
    for (const Op& op : of_layers(t, Phase::backward))
      if (op.collective == CollectiveKind::all_reduce && op.bytes < 2 * 2 * kWidth) backward.push_back(op.bytes);
    EXPECT_EQ(backward, std::vector<Bytes>(static_cast<std::size_t>(passes * (2 * kLayers + 1)),
                                           2 * (kTensor - 1) * 2 * kWidth / kTensor));
    const std::vector<Op> update = of_layers(t, Phase::optimizer);
    ASSERT_EQ(update.size(), 1u);
    EXPECT_EQ(update.front().collective, CollectiveKind::all_reduce);
    EXPECT_EQ(update.front().bytes, 2 * (kTensor - 1) * 4 * (9 * kLayers + 3) / kTensor);
  }
}

// Of a step that has no norm of its own the policy's is summed over both.
TEST(TensorFsdp, ThePolicysNormIsOverTheWholeMesh) {
  Recipe recipe = titan(4);
  recipe.parallel.clip_gradients = false;
  const Trace none = under(step_of(recipe), {fsdp(2)}),
              clipped = under(step_of(recipe), {fsdp(2, ",clip_grad_norm=1")});
  EXPECT_TRUE(of_layers(none, Phase::optimizer).empty());
  EXPECT_FALSE(sent_to_replicas(none).contains(CollectiveKind::all_reduce));
  EXPECT_EQ(of_layers(clipped, Phase::optimizer).size(), 1u);
  EXPECT_EQ(sent_to_replicas(clipped)[CollectiveKind::all_reduce].size(), 1u);
}

// The note counts the sums of both groups, whoever makes them.
TEST(TensorFsdp, SaysOverWhichGroupsNormsAreSummed) {
  const auto note = [](const Trace& t) {
    for (const std::string& text : t.notes)
      if (text.find("gradients' norm") != std::string::npos) return text;
    return std::string("none");
  };
  Recipe recipe = titan(4);
  EXPECT_EQ(note(under(step_of(recipe), {fsdp(2)})),
            "fsdp: 1 all-reduce of the gradients' norm, beside 1 of the step's own over the ranks that share layers");
  recipe.parallel.clip_gradients = false;
  EXPECT_EQ(note(under(step_of(recipe), {fsdp(2)})), "none");
  EXPECT_EQ(note(under(step_of(recipe), {fsdp(2, ",clip_grad_norm=1")})),
            "fsdp: 1 all-reduce of the gradients' norm, and 1 over the ranks that share layers");
}

// Kernels and messages of a step, in words, sorted: Megatron-LM's column and row compute their inputs' gradients first.
std::vector<std::string> work_of(const Trace& t) {
  std::vector<std::string> all;
  for (const Op& op : t.ops) {
    if (op.kind != OpKind::kernel && op.kind != OpKind::collective) continue;
    all.push_back(fmt::format("{} {} {} {} {} {} {}", t.strings[op.name], t.strings[op.module], to_string(op.phase),
                              fmt::join(t.shapes[op.shape], "x"), op.bytes, op.flops, op.duration.count()));
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string first_difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string one = i < a.size() ? a[i] : "nothing", other = i < b.size() ? b[i] : "nothing";
    if (one != other) return fmt::format("{} of {} and {}: {}; {}", i, a.size(), b.size(), one, other);
  }
  return "";
}

// The divided generator, asked for one rank, under fsdp: the step of one GPU under fsdp, kernel by kernel and message
// by message, and byte by byte of parameters, gradients and optimizer states.
TEST(TensorFsdp, OfOneTensorRankIsTodaysFsdp) {
  for (const OptimizerKernels kernels : {OptimizerKernels::fused, OptimizerKernels::foreach})
    for (const std::int64_t passes : {1, 2}) {
      Recipe plain = titan(1);
      plain.optimizer_kernels = kernels;
      plain.accumulation = passes;
      Recipe divided = plain;
      divided.parallel.main_gradients = MainGradients::none;  // which asks for the divided generator
      divided.parallel.clip_gradients = false;
      const Trace one = under(step_of(plain), {fsdp(8)}), other = under(step_of(divided), {fsdp(8)});
      ASSERT_TRUE(one.rank_table.empty());
      ASSERT_EQ(other.rank_table.size(), 1u);
      EXPECT_EQ(first_difference(work_of(one), work_of(other)), "");
      const auto most = [](const Trace& t, StorageKind kind) {
        Bytes bytes = 0;
        for (const LiveBytes& live : live_bytes(t)) bytes = std::max(bytes, of(live, kind));
        return bytes;
      };
      for (const StorageKind kind : {StorageKind::parameter, StorageKind::gradient, StorageKind::optimizer_state,
                                     StorageKind::communication_buffer})
        EXPECT_EQ(most(one, kind), most(other, kind)) << to_string(kind);
    }
}

// Messages of FSDP2 by kind and bytes, with where their members are beside the first, in no order.
std::multimap<std::string, Duration> shared_messages(const Trace& t, const Machine& on) {
  std::multimap<std::string, Duration> all;
  for (const Op& op : t.ops) {
    if (!is_of_replicas(t, op) || op.collective == CollectiveKind::all_reduce) continue;
    std::vector<std::uint32_t> members = t.groups[op.group].members;
    const std::uint32_t first = members.front();
    for (std::uint32_t& member : members) member -= first;
    const ProcessGroup group{std::string(kDataParallelGroup), t.groups[op.group].ranks, members};
    const auto pricer = make_pricer(on);
    const Bytes message = pricer->message_bytes(op.collective, op.bytes, group.ranks);
    all.emplace(fmt::format("{} {} {}", to_string(op.collective), op.bytes, fmt::join(members, ",")),
                pricer->collective(op.collective, message, group));
  }
  return all;
}

// The pipeline's own FSDP2 gathers a layer once in a step and keeps it: asked for the same (nothing given back after
// forward), with the embedding a unit of its own, the policy sends the same messages in the same places.
TEST(TensorFsdp, SendsWhatThePipelinesStagesSend) {
  for (const std::int64_t tensor : {2, 4}) {
    Recipe stages = titan(tensor);
    stages.parallel.pipeline = 2;
    stages.accumulation = 2;
    stages.data_parallel = 4;
    const Trace job = step_of(stages);
    std::multimap<std::string, Duration> piped;
    for (std::uint16_t rank = 0; rank < 2; ++rank)
      for (const auto& message : shared_messages(one_rank(job, rank), machine())) piped.insert(message);
    const Trace flat = under(step_of(titan(tensor)), {fsdp(4, ",units=layers.*+words,reshard_after_forward=0")});
    EXPECT_EQ(piped.size(), 2u * (kLayers + 2));
    EXPECT_EQ(shared_messages(flat, machine()), piped);
  }
}

// HSDP: shards within groups of every t-th rank, replicas beyond.
TEST(TensorFsdp, ReplicasOfShards) {
  const Trace t = under(step_of(titan(2)), {fsdp(8, ",replicate=2")});
  std::map<std::string, std::vector<std::uint32_t>> groups;
  for (const Op& op : t.ops)
    if (is_of_replicas(t, op)) groups[t.groups[op.group].name] = t.groups[op.group].members;
  EXPECT_EQ(groups["data parallel: fsdp.shard"], (std::vector<std::uint32_t>{0, 2, 4, 6}));
  EXPECT_EQ(groups["data parallel: fsdp.replicate"], (std::vector<std::uint32_t>{0, 8}));
  EXPECT_EQ(groups.size(), 2u);
  EXPECT_EQ(t.job_ranks, 16u);
}

// Groups of every t-th rank share the network's cards with those of the ranks between.
TEST(TensorFsdp, IsPricedInItsPlaces) {
  const Trace t = under(step_of(titan(4)), {fsdp(16)});
  const auto pricer = make_pricer(machine());
  std::size_t messages = 0, dearer = 0;
  for (const Op& op : t.ops) {
    if (!is_of_replicas(t, op)) continue;
    const ProcessGroup& group = t.groups[op.group];
    const Bytes message = pricer->message_bytes(op.collective, op.bytes, group.ranks);
    EXPECT_EQ(op.duration, pricer->collective(op.collective, message,
                                              {std::string(kDataParallelGroup), group.ranks, group.members}));
    std::vector<std::uint32_t> neighbours(group.members.size());
    std::iota(neighbours.begin(), neighbours.end(), 0u);
    dearer += op.duration >
              pricer->collective(op.collective, message, {std::string(kDataParallelGroup), group.ranks, neighbours});
    ++messages;
  }
  // Each layer is gathered twice and reduced once, the rest once each; the norm.
  EXPECT_EQ(messages, static_cast<std::size_t>(3 * kLayers + 2 + 1));
  EXPECT_GT(dearer, 0u) << "or places say nothing";
}

std::size_t count(const Trace& t, Phase phase, CollectiveKind kind) {
  std::size_t n = 0;
  for (const Op& op : of_layers(t, phase)) n += op.collective == kind;
  return n;
}

// A block that runs again gathers its tokens again; its sums are computed again by `full` and kept by `selective`, and
// its parameters are gathered once for both.
TEST(TensorFsdp, BlocksThatRunAgainGatherTheirTokensAgain) {
  const Trace step = step_of(titan(4));
  const Trace full = under(step, {fsdp(8), "torchtitan:mode=full"}),
              chosen = under(step, {fsdp(8), "torchtitan:mode=selective"});
  EXPECT_EQ(count(full, Phase::recompute, CollectiveKind::all_gather), 2u * kLayers);
  EXPECT_EQ(count(full, Phase::recompute, CollectiveKind::reduce_scatter), 2u * kLayers);
  EXPECT_EQ(count(chosen, Phase::recompute, CollectiveKind::all_gather), 2u * kLayers);
  EXPECT_EQ(count(chosen, Phase::recompute, CollectiveKind::reduce_scatter), 0u);
  for (const Trace* t : {&full, &chosen})
    EXPECT_EQ(sent_to_replicas(*t)[CollectiveKind::all_gather].size(), 2u * kLayers + 1);
}

TEST(TensorFsdp, StepsAreSoundAndRun) {
  for (const std::int64_t tensor : {2, 4})
    for (const std::int64_t passes : {1, 2})
      for (const std::string more :
           {"", ",replicate=2", ",accumulation=no_sync", ",reshard_after_forward=2", ",version=1", ",offload=cpu"})
        for (const std::string again : {"", "torchtitan:mode=full", "torchtitan:mode=selective"})
          for (const std::string compiled : {"", "compile:modules=layers.*", "compile"}) {
            Recipe recipe = titan(tensor);
            recipe.accumulation = passes;
            recipe.parallel.clip_gradients = more != ",offload=cpu";  // the norms would be the CPU's
            std::vector<std::string> policies{fsdp(4, more)};
            for (const std::string& one : {again, compiled})
              if (!one.empty()) policies.push_back(one);
            SCOPED_TRACE(fmt::format("{} tensor ranks, {} passes: {}", tensor, passes, fmt::join(policies, " ")));
            const Trace step = step_of(recipe), t = under(step, policies);
            EXPECT_EQ(check(t), std::vector<std::string>{});
            EXPECT_EQ(races(t), std::vector<std::string>{});
            EXPECT_EQ(early_frees(t), std::vector<std::string>{});
            EXPECT_GT(simulate(t, machine_of_ranks(machine(), t), {}).gpu_span, Duration{});
          }
}

// Flat states are Megatron-LM's and DeepSpeed's.
TEST(TensorFsdp, WhatIsUpdatedAsOneTensorIsRefused) {
  for (const ParallelFramework framework : {ParallelFramework::megatron, ParallelFramework::deepspeed}) {
    Recipe recipe = titan(2);
    recipe.parallel.framework = framework;
    recipe.parallel.main_gradients = MainGradients::none;
    try {
      under(step_of(recipe), {fsdp(4)});
      ADD_FAILURE() << "taken";
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("parallel_framework=torchtitan"), std::string::npos) << error.what();
    }
  }
}

TEST(TensorFsdp, ReplicasOfTheJobAreAPolicys) {
  Recipe recipe = titan(2);
  recipe.data_parallel = 4;
  try {
    generate_step(llama(), recipe);
    ADD_FAILURE() << "taken";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("--policy fsdp:ranks=4,reduce_dtype=fp32"), std::string::npos)
        << error.what();
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
