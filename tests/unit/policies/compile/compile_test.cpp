// A step whose layers are compiled, beside the generator's compiled layers: the same products, as much kept for
// backward, as many kernels but for named causes; CUDA graphs; what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <tuple>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/parallel/parallel_step.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "policies/trace/live_profile.h"
#include "sim/trace/repeat.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/recipe_checks.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/small_networks.h"
#include "tests/support/step_memory.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kLayers = "compile:modules=layers.*";

// Both steps of a network: as a policy makes it of the eager one, and as the generator writes it. The loss stays eager.
struct Both {
  Trace found, expected;
};

Both compiled(const Model& model, Recipe recipe, const char* machine = kRecipeMachine) {
  recipe.compiled_loss = false;
  Both both;
  both.found = recipe_rewritten(modelled_step(model, recipe, machine), kLayers, machine);
  EXPECT_EQ(check(both.found), std::vector<std::string>{});
  recipe.execution = ExecutionMode::compiled;
  both.expected = modelled_step(model, recipe, machine);
  return both;
}

Recipe recipe(std::int64_t batch) {
  Recipe r;
  r.batch = batch;
  return r;
}

std::vector<SmallNetwork> decoders() {
  std::vector<SmallNetwork> all = small_networks();
  all.resize(2);
  for (SmallNetwork& network : all) network.model.dropout = 0;
  return all;
}

bool is_product(const Op& op) {
  return op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::attention;
}

// Products and attention, however often each stands there.
auto products(const Trace& t) {
  std::map<std::tuple<Phase, std::string, Shape, double, DataType>, int> all;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::kernel && is_product(op))
      ++all[{op.phase, t.strings[op.operator_name], t.shapes[op.shape], op.flops, op.data_type}];
  return all;
}

// Kind, group and bytes of each collective.
auto collectives(const Trace& t) {
  std::map<std::tuple<CollectiveKind, std::uint16_t, Bytes>, int> all;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::collective) ++all[{op.collective, op.group, op.bytes}];
  return all;
}

// torchtitan compiles the blocks of a tensor-parallel step, too: what is sent stays, and what is multiplied.
TEST(CompileRecipe, TensorParallelStepsKeepCollectivesAndProducts) {
  Model model = decoders().back().model;
  for (const bool by_tokens : {false, true}) {
    Recipe parallel = recipe(2);
    parallel.precision = Precision::bf16;
    parallel.parallel.framework = ParallelFramework::torchtitan;
    parallel.parallel.tensor = 2;
    parallel.parallel.sequence_parallel = by_tokens;
    const Trace eager = modelled_on(parallel_step(model, parallel), load_machine(kRecipeMachine));
    const Trace found = recipe_rewritten(eager, kLayers, kRecipeMachine);
    EXPECT_EQ(check(found), std::vector<std::string>{});
    EXPECT_FALSE(collectives(found).empty());
    EXPECT_EQ(collectives(found), collectives(eager)) << by_tokens;
    EXPECT_EQ(products(found), products(eager)) << by_tokens;
    const auto kernels = [](const Trace& t) {
      return std::count_if(t.ops.begin(), t.ops.end(), [](const Op& op) { return op.kind == OpKind::kernel; });
    };
    EXPECT_LT(kernels(found), kernels(eager)) << by_tokens;
  }
}

TEST(CompileRecipe, ProductsAreThoseOfTheGeneratedStep) {
  for (const SmallNetwork& network : decoders())
    for (const std::int64_t batch : {1, 3}) {
      SCOPED_TRACE(network.name);
      const Both both = compiled(network.model, recipe(batch));
      EXPECT_EQ(products(both.found), products(both.expected));
    }
}

// torchao's layers cast what they multiply anew in each call; a compiler casts once what several products read.
TEST(CompileRecipe, Fp8CastsAreThoseOfTheGeneratedStep) {
  Model model = decoders().back().model;
  Recipe fp8 = recipe(2);
  fp8.precision = Precision::fp8;
  const Both both = compiled(model, fp8, "h100-sxm-80gb");
  const auto largest = [](const Trace& t, const std::string& word) {
    return std::ranges::count_if(t.ops, [&](const Op& op) {
      return op.kind == OpKind::kernel && t.strings[op.module].starts_with("layers.") &&
             t.strings[op.operator_name].find(word) != std::string::npos;
    });
  };
  EXPECT_GT(largest(both.expected, "fused_amax"), 0);
  EXPECT_EQ(largest(both.found, "max"), largest(both.expected, "fused_amax"));
}

// Kernels of a layer by phase and class, without products.
auto small_kernels(const Trace& t, const std::string& module) {
  std::map<std::pair<Phase, OperatorClass>, int> all;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::kernel && !is_product(op) && t.strings[op.module].starts_with(module))
      all[{op.phase, op.operator_class}] += op.kernels;
  return all;
}

TEST(CompileRecipe, KernelsOfAGptLayerAreThoseOfTheGeneratedStep) {
  const Both both = compiled(decoders().front().model, recipe(3));
  EXPECT_EQ(small_kernels(both.found, "layers.0"), small_kernels(both.expected, "layers.0"));
}

int all_of(const std::map<std::pair<Phase, OperatorClass>, int>& kernels, Phase phase) {
  int sum = 0;
  for (const auto& [key, count] : kernels) sum += key.first == phase ? count : 0;
  return sum;
}

// The differences that remain, of a Llama layer: rotation by halves is not one kernel (a negation of queries' and keys'
// halves forward; backward two kernels more of each); the gradients of gate and up, which read the same, are two
// kernels; and the three sums of gradients of products are part of the normalization's backward.
TEST(CompileRecipe, KernelsOfALlamaLayerDifferByNamedCauses) {
  const Both both = compiled(decoders()[1].model, recipe(3));
  const auto found = small_kernels(both.found, "layers.0"), expected = small_kernels(both.expected, "layers.0");
  constexpr int kNegations = 2, kRotationsBackward = 4, kReadTheSame = 1, kSums = 3;
  EXPECT_EQ(all_of(found, Phase::forward) - all_of(expected, Phase::forward), kNegations);
  EXPECT_EQ(all_of(found, Phase::backward) - all_of(expected, Phase::backward),
            kRotationsBackward + kReadTheSame - kSums);
  EXPECT_EQ(all_of(found, Phase::recompute), 0);  // what runs again is merged
}

double ratio(Bytes a, Bytes b) { return static_cast<double>(a) / static_cast<double>(b); }

// Of whole networks: what is kept for backward, the peak, traffic and time.
TEST(CompileRecipe, WholeNetworksKeepAndMoveWhatTheGeneratedOnesDo) {
  for (const char* const name : {"gpt2-124m:dropout=0,precision=bf16", "llama3.2-1b:sequence=2048"}) {
    SCOPED_TRACE(name);
    const TrainingJob job = load_training_job(name);
    const Both both = compiled(job.model, job.recipe, "a100-sxm-80gb");
    const StepMemory found = step_memory(both.found), expected = step_memory(both.expected);
    EXPECT_NEAR(ratio(found.saved, expected.saved), 1, 0.002);
    EXPECT_NEAR(ratio(peak(found), peak(expected)), 1, 0.002);
    const Duration is = device_time(both.found, Phase::backward) + device_time(both.found, Phase::forward);
    const Duration wanted = device_time(both.expected, Phase::backward) + device_time(both.expected, Phase::forward);
    EXPECT_NEAR(to_seconds(is) / to_seconds(wanted), 1, 0.05);  // 4.1 % of Llama, which rotates in more kernels
  }
}

// Inductor draws masks again; the cut keeps them, a byte per element: a known gap.
TEST(CompileRecipe, MasksOfDropoutAreKept) {
  Model model = decoders().front().model;
  model.dropout = 0.1;
  const Both both = compiled(model, recipe(3));
  EXPECT_GT(step_memory(both.found).saved, step_memory(both.expected).saved);
}

// Of forward and backward; the optimizer stays as it was.
TEST(CompileRecipe, NothingIsDispatched) {
  const Trace eager = modelled_step(decoders()[1].model, recipe(2)), found = recipe_rewritten(eager, "compile");
  const Machine machine = load_machine("a100-sxm-80gb");
  for (const Op& op : found.ops) {
    if (op.kind != OpKind::kernel) continue;
    const bool compiled = op.phase != Phase::optimizer;
    EXPECT_EQ(op.dispatch == Dispatch::compiled, compiled) << found.strings[op.name];
    EXPECT_EQ(op.framework_calls == 0, compiled);
    if (compiled) {
      EXPECT_EQ(op.host_gap, std::int64_t{op.kernels} * machine.host.compiled_call);
    }
  }
  EXPECT_EQ(count(found, Phase::optimizer), count(eager, Phase::optimizer));
}

// Every way of compiling moves less and keeps no more than the step as it is, of every network.
TEST(CompileRecipe, MovesLessThanTheStepAsItIs) {
  const auto traffic = [](const Trace& t) {
    Bytes bytes = 0;
    for (const Op& op : t.ops) bytes += op.kind == OpKind::kernel ? op.bytes : 0;
    return bytes;
  };
  for (const SmallNetwork& network : small_networks())
    for (const Precision precision : {Precision::bf16, Precision::amp_bf16, Precision::fp32}) {
      Recipe r = recipe(2);
      r.precision = precision;
      const Trace eager = modelled_step(network.model, r);
      for (const char* const policy : {"compile", "compile:keep=saved", "compile:epilogues=gemm"}) {
        SCOPED_TRACE(std::string(network.name) + " " + policy);
        const Trace found = recipe_rewritten(eager, policy);
        EXPECT_EQ(check(found), std::vector<std::string>{});
        EXPECT_LT(traffic(found), traffic(eager));
        EXPECT_LE(step_memory(found).saved, step_memory(eager).saved);
        EXPECT_EQ(std::ranges::count_if(found.ops, is_product), std::ranges::count_if(eager.ops, is_product));
      }
    }
}

TEST(CompileRecipe, GraphsAreOneCallEach) {
  for (const SmallNetwork& network : small_networks()) {
    SCOPED_TRACE(network.name);
    const Trace eager = modelled_step(network.model, recipe(2));
    const Trace calls = recipe_rewritten(eager, "compile"),
                graphs = recipe_rewritten(recipe_rewritten(eager, "compile"), "cuda_graphs");
    EXPECT_EQ(check(graphs), std::vector<std::string>{});
    std::size_t launches = 0, nodes = 0, kernels = 0;
    for (const Op& op : graphs.ops) {
      launches += op.kind == OpKind::graph_launch ? 1 : 0;
      nodes += op.graph_member ? 1 : 0;
      if (op.graph_member) {
        EXPECT_EQ(op.host_gap + op.host_cost, Duration{});
      }
    }
    for (const Op& op : calls.ops) kernels += op.kind == OpKind::kernel && op.phase != Phase::optimizer ? 1 : 0;
    EXPECT_EQ(nodes, kernels);
    EXPECT_EQ(launches, 2u);  // forward, backward
    EXPECT_LT(simulated(graphs).end, simulated(calls).end);
    EXPECT_TRUE(has_note(graphs, "their pool holds"));
  }
}

// What lives within one graph lies in its pool, as much as lives at once; what outlives it does not.
TEST(CompileRecipe, AGraphsPoolHoldsWhatLivesWithinIt) {
  const Trace eager = modelled_step(decoders()[1].model, recipe(2));
  const Trace calls = recipe_rewritten(eager, "compile"),
              graphs = recipe_rewritten(recipe_rewritten(eager, "compile"), "cuda_graphs");
  const auto pool = std::ranges::find_if(
      graphs.storages, [&](const Storage& s) { return graphs.strings[s.label] == "cuda_graph.pool"; });
  ASSERT_NE(pool, graphs.storages.end());
  EXPECT_TRUE(pool->preexisting);
  EXPECT_GT(pool->bytes, 0);
  EXPECT_GE(peak(step_memory(graphs)), peak(step_memory(calls)));
  EXPECT_LE(peak(step_memory(graphs)), peak(step_memory(calls)) + pool->bytes + activation_peak(calls));
}

TEST(CompileRecipe, EachOfSeveralStepsIsCompiled) {
  const Trace one = modelled_step(decoders().front().model, recipe(2));
  const Trace two = recipe_rewritten(repeated(one, 2), "compile");
  EXPECT_EQ(check(two), std::vector<std::string>{});
  EXPECT_EQ(count(two, Phase::backward), 2 * count(recipe_rewritten(one, "compile"), Phase::backward));
}

TEST(CompileRecipe, ComposesWithOtherRecipes) {
  const Trace eager = modelled_step(decoders()[1].model, recipe(2));
  for (const char* const policy : {"accumulate:2", "optimizer:sgd", "loss:chunked,chunks=4"}) {
    const Machine machine = load_machine("a100-sxm-80gb");
    const auto pricer = test_pricer(machine);
    const Trace both = apply_rewriters(eager, {parse_policy("compile"), parse_policy(policy)}, machine, *pricer);
    EXPECT_EQ(check(both), std::vector<std::string>{}) << policy;
  }
}

// Times of a measured step: what is merged is carried over, products keep theirs.
TEST(CompileRecipe, MeasuredTimesAreCarriedOver) {
  Trace measured = modelled_step(decoders()[1].model, recipe(2));
  for (Op& op : measured.ops)
    if (runs_on_device(op.kind)) op.origin = Origin::measured, op.duration = 2 * op.duration;
  const Trace found = recipe_rewritten(measured, "compile");
  std::size_t merged = 0;
  for (const Op& op : found.ops) {
    if (op.kind != OpKind::kernel || op.phase == Phase::optimizer) continue;
    if (is_product(op)) {
      EXPECT_EQ(op.origin, Origin::measured);
    }
    if (!found.strings[op.name].starts_with("fused(")) continue;
    EXPECT_EQ(op.origin, Origin::transferred);
    ++merged;
  }
  EXPECT_GT(merged, 0u);
}

// Sums over ranks and messages between stages have no place in a merged kernel.
TEST(CompileRecipe, LayersThatAreDividedStayEager) {
  const Trace code = recipe_rewritten(modelled_step(decoders()[1].model, recipe(2)), "compile");
  EXPECT_NE(refusal(code, "tensor:ranks=2").find("compiled code"), std::string::npos)
      << refusal(code, "tensor:ranks=2");
  EXPECT_NE(refusal(code, "pipeline:stages=2").find("compiled code"), std::string::npos);
}

// The pool of the graphs comes beside what a plan has counted.
TEST(CompileRecipe, ABudgetThatThePoolExceedsIsNotKept) {
  Trace code = recipe_rewritten(modelled_step(decoders()[1].model, recipe(2)), "compile");
  const Bytes peak = LiveProfile(recipe_rewritten(code, "cuda_graphs")).peak();
  code.budgets = {{"plan", peak - 1000, 0}, {"plan", peak, 0}};
  const Trace graphs = recipe_rewritten(code, "cuda_graphs");
  ASSERT_EQ(graphs.budgets.size(), 2u);
  EXPECT_EQ(graphs.budgets[0].over, 1000);
  EXPECT_EQ(graphs.budgets[1].over, 0);
}

TEST(CompileRecipe, WhatCannotBeCompiledIsRefused) {
  EXPECT_NE(refusal(gpt_step({}), "compile").find("elements"), std::string::npos) << refusal(gpt_step({}), "compile");
  const Trace eager = modelled_step(decoders()[1].model, recipe(2));
  EXPECT_NE(refusal(eager, "compile:modules=blocks.*").find("within modules=blocks.*"), std::string::npos);
  EXPECT_NE(refusal(recipe_rewritten(eager, "compile"), "compile").find("compiled already"), std::string::npos);
  EXPECT_NE(refusal(recipe_rewritten(recipe_rewritten(eager, "compile"), "cuda_graphs"), "compile")
                .find("CUDA graph already"),
            std::string::npos);
  EXPECT_THROW(parse_policy("compile:mode=max"), UsageError);
  EXPECT_NE(refusal(eager, "cuda_graphs").find("give compile beside it"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
