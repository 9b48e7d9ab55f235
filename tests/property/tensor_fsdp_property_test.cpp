// Whatever the network, the tensor-parallel ranks, the shards, replicas and passes: are the bytes and messages of
// FSDP2 beside tensor parallelism those of the shares that each rank has?
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "models/hw/modelled_step.h"
#include "models/workload/generate/generate.h"
#include "sim/engine/simulation.h"
#include "sim/machine/rank_machine.h"
#include "sim/policy/registry.h"
#include "sim/trace/group_names.h"
#include "sim/trace/trace_check.h"
#include "tests/support/live_bytes.h"
#include "tests/support/races.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

template <typename T>
T any_value(T low, T high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, high));
}

struct TensorCase {
  Model model;
  Recipe recipe;
  std::int64_t shards = 2, replicas = 1;
  bool reshards = true, merges_across_units = false;
  std::vector<std::string> policies;
};

TensorCase any_tensor_case() {
  TensorCase c;
  const std::int64_t tensor = std::int64_t{1} << any_value(1, 4), per_rank = any_value<std::int64_t>(1, 3);
  Model& m = c.model;
  m.name = "random llama";
  m.architecture = Architecture::decoder;
  m.layers = any_value<std::int64_t>(2, 5);
  m.key_value_heads = tensor;
  m.heads = tensor * per_rank;
  m.head_size = 16;
  m.width = 16 * any_value<std::int64_t>(1, 9);
  m.inner = tensor * any_value<std::int64_t>(3, 40);
  m.vocabulary = any_value<std::int64_t>(100, 400);
  m.longest = 16 * tensor;
  m.normalization = Normalization::rms_norm, m.activation = Activation::swiglu, m.positions = Positions::rotary;
  m.bias = m.joint_query_key_value = m.tied_embedding = false;
  m.query_key_value_bias = any_value(0, 2) == 1;
  Recipe& r = c.recipe;
  r.precision = any_value(0, 3) == 0 ? Precision::fp32 : Precision::bf16;
  r.accumulation = any_value<std::int64_t>(1, 4);
  r.optimizer_kernels = any_value(0, 2) == 0 ? OptimizerKernels::fused : OptimizerKernels::foreach;
  r.parallel.framework = ParallelFramework::torchtitan;
  r.parallel.tensor = tensor;
  r.parallel.sequence_parallel = any_value(0, 4) > 0;
  r.parallel.async_tensor_parallel = r.parallel.sequence_parallel && any_value(0, 2) == 0;
  c.shards = any_value<std::int64_t>(2, 9);
  c.replicas = any_value(0, 3) == 0 ? any_value<std::int64_t>(2, 4) : 1;
  c.reshards = any_value(0, 3) > 0;
  c.policies.push_back(fmt::format("fsdp:ranks={},replicate={},reduce_dtype=fp32,hook_us=0{}", c.shards * c.replicas,
                                   c.replicas, c.reshards ? "" : ",reshard_after_forward=0"));
  const int again = any_value(0, 3);
  if (again > 0) c.policies.push_back(again == 1 ? "torchtitan:mode=full" : "torchtitan:mode=selective");
  const int compiled = any_value(0, 3);
  c.merges_across_units = compiled == 1;
  if (compiled > 0) c.policies.push_back(compiled == 1 ? "compile" : "compile:modules=layers.*");
  return c;
}

// Elements of a parameter in all shards together, which are padded along its first dimension.
std::int64_t padded(const Trace& t, const Storage& parameter, std::int64_t shards) {
  const Shape& shape = t.shapes[parameter.shape];
  std::int64_t elements = 1;
  for (const std::int64_t n : shape) elements *= n;
  return (shape.front() + shards - 1) / shards * shards * (elements / shape.front());
}

RC_GTEST_PROP(TensorFsdpProperty, BytesAndMessagesAreThoseOfTheShares, ()) {
  const TensorCase c = any_tensor_case();
  const Machine machine = test_machine();
  const Trace step = modelled_on(generate_step(c.model, c.recipe), machine);
  std::vector<PolicySpec> specs;
  for (const std::string& policy : c.policies) specs.push_back(parse_policy(policy));
  const auto pricer = test_pricer(machine);
  const Trace t = apply_rewriters(step, specs, machine, *pricer);
  RC_ASSERT(check(t).empty());
  // Pieces of products are parts of one storage, which races cannot tell apart.
  RC_ASSERT(early_frees(t) == std::vector<std::string>{});
  if (!c.recipe.parallel.async_tensor_parallel) RC_ASSERT(races(t) == std::vector<std::string>{});

  std::int64_t all = 0, of_layers = 0;
  for (const Storage& s : step.storages) {
    if (s.kind != StorageKind::parameter) continue;
    const std::int64_t elements = padded(step, s, c.shards);
    all += elements;
    if (step.strings[s.label].starts_with("layers.")) of_layers += elements;
  }
  const Bytes low = c.recipe.precision == Precision::fp32 ? 4 : 2;
  RC_ASSERT(of(live_bytes(t).front(), StorageKind::parameter) == 4 * all / c.shards);
  RC_ASSERT(of(live_bytes(t).front(), StorageKind::gradient) == 0);

  std::map<CollectiveKind, Bytes> sent;
  std::map<CollectiveKind, std::size_t> count;
  for (const Op& op : t.ops) {
    if (op.kind != OpKind::collective || !t.groups[op.group].name.starts_with(kDataParallelGroup)) continue;
    if (op.phase == Phase::optimizer) continue;  // norms
    sent[op.collective] += op.bytes;
    ++count[op.collective];
    const std::vector<std::uint32_t>& members = t.groups[op.group].members;
    RC_ASSERT(members.size() ==
              static_cast<std::size_t>(op.collective == CollectiveKind::all_reduce ? c.replicas : c.shards));
    for (const std::uint32_t member : members) RC_ASSERT(member % c.recipe.parallel.tensor == 0);
  }
  // What one rank sends is rounded for each message.
  const auto near = [](Bytes found, double expected, std::size_t messages) {
    return std::abs(static_cast<double>(found) - expected) <= static_cast<double>(messages);
  };
  const double part = static_cast<double>(c.shards - 1) / static_cast<double>(c.shards);
  const auto passes = static_cast<double>(c.recipe.accumulation);
  const double gathered = static_cast<double>(all + (c.reshards ? of_layers : 0)) * static_cast<double>(low);
  if (c.merges_across_units) {
    // A norm that ends the kernel of the layer before comes with that one, and may not come again in backward.
    const double norms = static_cast<double>(c.model.layers * (c.model.width + c.shards) * low) * passes;
    const auto found = static_cast<double>(sent[CollectiveKind::all_gather]);
    RC_ASSERT(found <= gathered * part * passes + norms);
    RC_ASSERT(found >= gathered * part * passes - norms);
  } else {
    RC_ASSERT(near(sent[CollectiveKind::all_gather], gathered * part * passes, count[CollectiveKind::all_gather]));
  }
  RC_ASSERT(near(sent[CollectiveKind::reduce_scatter], 4.0 * static_cast<double>(all) * part * passes,
                 count[CollectiveKind::reduce_scatter]));
  const double between = 2.0 * static_cast<double>(c.replicas - 1) / static_cast<double>(c.replicas);
  RC_ASSERT(
      near(sent[CollectiveKind::all_reduce],
           between * 4.0 * static_cast<double>(all) / static_cast<double>(c.shards) * passes,
           2 * static_cast<std::size_t>(c.replicas - 1) * count[CollectiveKind::all_reduce]));  // parts are rounded
  RC_ASSERT(t.job_ranks == c.recipe.parallel.tensor * c.shards * c.replicas);
  RC_ASSERT(simulate(t, machine_of_ranks(machine, t), {}).gpu_span > Duration{});
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
