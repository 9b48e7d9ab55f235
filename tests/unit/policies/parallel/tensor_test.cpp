// Is a step that is rewritten for tensor parallelism the step that the generator writes for it: products, attention,
// sums over ranks, parameters, gradients and states?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const Machine& machine() {
  static const Machine loaded = load_machine("dgx-a100-80gb");
  return loaded;
}

Trace step_of(const std::string& job) {
  const TrainingJob loaded = load_training_job(job);
  return modelled_on(generate_step(loaded.model, loaded.recipe), machine());
}

Trace rewritten(const Trace& trace, const std::string& policy) {
  return apply_rewriters(trace, {parse_policy(policy)}, machine(), *make_pricer(machine()));
}

// What an op works on, where the order of a product's extents means nothing.
std::map<std::vector<std::int64_t>, int> work_of(const Trace& t, OperatorClass c) {
  std::map<std::vector<std::int64_t>, int> counts;
  for (const Op& op : t.ops) {
    if (op.kind != OpKind::kernel || op.operator_class != c) continue;
    std::vector<std::int64_t> extents(t.shapes[op.shape].begin(), t.shapes[op.shape].end());
    if (c == OperatorClass::gemm) std::sort(extents.begin() + 1, extents.end());
    ++counts[extents];
  }
  return counts;
}

std::map<Bytes, int> sums_in_layers(const Trace& t) {
  std::map<Bytes, int> counts;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::collective && op.collective == CollectiveKind::all_reduce &&
        t.strings[op.module].starts_with("layers."))
      ++counts[op.bytes];
  return counts;
}

Bytes bytes_of_kind(const Trace& t, StorageKind kind) {
  Bytes sum = 0;
  for (const Storage& s : t.storages)
    if (s.kind == kind) sum += s.bytes;
  return sum;
}

double flops_of(const Trace& t, OperatorClass c) {
  double sum = 0;
  for (const Op& op : t.ops)
    if (op.operator_class == c) sum += op.flops;
  return sum;
}

constexpr const char* kGpt = "gpt2-124m:layers=3,width=512,heads=8,vocabulary=2048,sequence=128,batch=2,precision=bf16";
constexpr const char* kLlama =
    "llama3.2-1b:layers=2,width=512,heads=8,key_value_heads=4,inner=1024,vocabulary=2048,sequence=128,batch=2,"
    "tied_embedding=false";

class TensorPolicy : public ::testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(TensorPolicy, IsWhatTheGeneratorWrites) {
  const auto& [job, ranks] = GetParam();
  const Trace one = step_of(job);
  const Trace after = rewritten(one, "tensor:ranks=" + std::to_string(ranks));
  EXPECT_EQ(check(after), std::vector<std::string>{});
  const Trace generated = step_of(std::string(job) + ",tensor=" + std::to_string(ranks) +
                                  ",main_gradients=none,clip_gradients=false,parallel_framework=torchtitan");
  EXPECT_EQ(work_of(after, OperatorClass::gemm), work_of(generated, OperatorClass::gemm));
  EXPECT_EQ(work_of(after, OperatorClass::attention), work_of(generated, OperatorClass::attention));
  EXPECT_EQ(sums_in_layers(after), sums_in_layers(generated));
  EXPECT_EQ(bytes_of_kind(after, StorageKind::parameter), bytes_of_kind(generated, StorageKind::parameter));
  EXPECT_EQ(bytes_of_kind(after, StorageKind::gradient), bytes_of_kind(generated, StorageKind::gradient));
  for (const OperatorClass c : {OperatorClass::gemm, OperatorClass::attention})
    EXPECT_NEAR(flops_of(after, c) * ranks, flops_of(one, c), 1e-9 * flops_of(one, c));
}

INSTANTIATE_TEST_SUITE_P(Networks, TensorPolicy,
                         ::testing::Combine(::testing::Values(kGpt, kLlama), ::testing::Values(2, 4)));

TEST(TensorPolicy, MakesTheStepShorterAndSmaller) {
  const Trace one = step_of("gpt2-124m:layers=4,width=2048,heads=16,sequence=1024,batch=4,precision=bf16,vocabulary=51200");
  const Trace four = rewritten(one, "tensor:ranks=4");
  SimulationOptions options;
  options.allocator = "ideal";
  const SimulationResult before = simulate(one, machine(), options), after = simulate(four, machine(), options);
  EXPECT_LT(after.end, before.end);
  EXPECT_GT(4 * after.end, before.end);  // sums over ranks and what every rank has whole
  EXPECT_LT(after.tiers[0].peak_allocated, before.tiers[0].peak_allocated);
}

// Layers as transformers has them: what is split is what their heads, widths and words are.
TEST(TensorPolicy, DividesFamiliesOfTransformers) {
  for (const char* network : {"gemma2-2b:head_size=64,key_value_heads=4", "pythia-160m", "opt-125m", "phi-1.5",
                              "bloom-560m", "falcon-40b:key_value_heads=4", "roberta-base", "distilbert-base"}) {
    const std::string settings = "layers=2,width=512,heads=8,vocabulary=2048,sequence=128,batch=2,precision=bf16";
    const bool more = std::string(network).find(':') != std::string::npos;
    const Trace one = step_of(std::string(network) + (more ? "," : ":") + settings);
    const Trace after = rewritten(one, "tensor:ranks=2");
    EXPECT_EQ(check(after), std::vector<std::string>{}) << network;
    EXPECT_NEAR(flops_of(after, OperatorClass::gemm) * 2, flops_of(one, OperatorClass::gemm),
                0.05 * flops_of(one, OperatorClass::gemm))
        << network;  // an encoder's transform before the output layer is whole on each rank
    // Of a parallel layer both results are summed once, of others each; and backward likewise.
    EXPECT_GE(sums_in_layers(after).size(), 1u) << network;
  }
}

// A mean over all heads' elements would have to be summed over ranks.
TEST(TensorPolicy, RefusesNormsOverAllHeads) {
  const std::string job = "olmo2-1b:layers=1,width=512,heads=8,inner=1024,vocabulary=2048,sequence=128,batch=2";
  try {
    rewritten(step_of(job), "tensor:ranks=2");
    ADD_FAILURE() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("a norm over all heads"), std::string::npos) << error.what();
  }
}

TEST(TensorPolicy, KeepsCheckpointedLayersSound) {
  const Trace one = step_of(std::string(kGpt) + ",checkpoint=full");
  EXPECT_EQ(check(rewritten(one, "tensor:ranks=2")), std::vector<std::string>{});
}

TEST(TensorPolicy, RefusesWhatDoesNotDivide) {
  EXPECT_THROW(rewritten(step_of(kGpt), "tensor:ranks=7"), UsageError);
  EXPECT_THROW(rewritten(step_of("resnet50:batch=2"), "tensor:ranks=2"), UsageError);
  EXPECT_THROW(rewritten(step_of(std::string(kLlama) + ",key_value_heads=2"), "tensor:ranks=4"), UsageError);
  EXPECT_THROW(rewritten(step_of(std::string(kGpt) + ",data_parallel=2"), "tensor:ranks=2"), UsageError);
}

// A layer that no name tells is named by the user; without that it is refused, not guessed.
TEST(TensorPolicy, TakesNamesOfLayers) {
  Trace trace = step_of(kGpt);
  for (Storage& s : trace.storages) {
    std::string label = trace.strings[s.label];
    const std::size_t at = label.find(".up.");
    if (at != std::string::npos) s.label = trace.strings.intern(label.replace(at, 4, ".widen."));
  }
  EXPECT_THROW(rewritten(trace, "tensor:ranks=2"), UsageError);
  const Trace named = rewritten(trace, "tensor:ranks=2,column=widen");
  EXPECT_EQ(work_of(named, OperatorClass::gemm), work_of(rewritten(step_of(kGpt), "tensor:ranks=2"), OperatorClass::gemm));
}

TEST(TensorPolicy, RefusesNamesThatNoModuleHas) {
  const Trace trace = step_of(kGpt);
  for (const auto& [policy, words] :
       {std::pair{"tensor:ranks=2,column=upp", "column=upp: no module of trace"},
        {"tensor:ranks=2,row=nothing", "row=nothing: no module of trace"},
        {"tensor:ranks=2,column=up,row=up", "up stands in column= and in row="}}) {
    try {
      rewritten(trace, policy);
      ADD_FAILURE() << "taken: " << policy;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
