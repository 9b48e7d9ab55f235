// Behind what shares parameters over ranks, whatever the network, the sharding and the budget: is what planners decide
// carried out, into a sound trace without races in which every kernel reads what it read? Gathered parameters come and
// go there, collectives of other streams use what is dropped, and re-runs read what a plan moves.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "models/hw/modelled_step.h"
#include "models/workload/generate/generate.h"
#include "policies/trace/parameter_gathers.h"
#include "sim/machine/rank_machine.h"
#include "tests/support/carried_out.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

template <typename T>
T any_value(T low, T high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, high));
}

std::string any_fsdp(bool is_tensor_parallel) {
  const int version = is_tensor_parallel ? 2 : any_value(1, 3);
  std::string policy = fmt::format("fsdp:version={},ranks={},reduce_dtype={},hook_us={}", version, 2 * any_value(1, 5),
                                   any_value(0, 2) == 0 ? "fp32" : "step", 100 * any_value(0, 2));
  if (version == 1) return policy + (any_value(0, 2) == 0 ? ",strategy=grad_op" : "");
  if (const int after = any_value(0, 3); after < 2) policy += fmt::format(",reshard_after_forward={}", after);
  return policy + fmt::format(",backward_ahead={}", any_value(0, 3));
}

std::string any_sharding(bool is_tensor_parallel) {
  if (is_tensor_parallel || any_value(0, 2) == 0) return any_fsdp(is_tensor_parallel);
  const int stage = any_value(0, 4), ranks = 2 * any_value(1, 5);
  if (any_value(0, 3) == 0) return fmt::format("zero:stage={},ranks={}", stage, ranks);
  return fmt::format("deepspeed:stage={},ranks={},overlap_comm={},param_persistence_threshold={}", stage, ranks,
                     any_value(0, 2), any_value(0, 2) * 100'000);
}

// What kernels compute, in their order, but for what serves parameters: re-runs gather some once more.
std::vector<std::uint64_t> contents_of(const Trace& trace) {
  const std::vector<std::uint64_t> hashes = producer_hashes(trace);
  std::vector<std::uint64_t> contents;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.kind != OpKind::kernel || serves_parameters(trace, op)) continue;
    if (op.phase == Phase::recompute)
      RC_ASSERT(hashes[id] == hashes[op.source]);
    else
      contents.push_back(hashes[id]);
  }
  return contents;
}

struct ShardedCase {
  Model model = small_rotary_decoder();
  Recipe recipe;
  std::string sharding;
};

// Storages of megabytes, so that the allocator's segments of 2 MiB tell one budget from another.
ShardedCase any_sharded_case() {
  ShardedCase c;
  if (any_value(0, 3) == 0) c.model = small_words(Architecture::decoder);
  const bool is_tensor_parallel = c.model.key_value_heads > 0 && any_value(0, 3) == 0;
  c.model.layers = any_value<std::int64_t>(2, 4);
  c.model.width = 1024, c.model.vocabulary = 4096, c.model.longest = 1024;
  if (c.model.inner > 0) c.model.inner = 2816;
  c.recipe.batch = any_value<std::int64_t>(1, 5);
  c.recipe.accumulation = any_value<std::int64_t>(1, 3);
  c.recipe.precision = any_value(0, 3) == 0 ? Precision::fp32 : Precision::bf16;
  c.recipe.master_parameters = c.recipe.precision == Precision::bf16 && !is_tensor_parallel && any_value(0, 2) == 0;
  c.recipe.optimizer_kernels = any_value(0, 2) == 0 ? OptimizerKernels::fused : OptimizerKernels::foreach;
  if (is_tensor_parallel) {
    if (c.recipe.precision == Precision::bf16) c.recipe.master_parameters = true;  // torchtitan has no other
    c.recipe.parallel.framework = ParallelFramework::torchtitan;
    c.recipe.parallel.tensor = 2;
    c.recipe.parallel.sequence_parallel = any_value(0, 2) == 0;
  }
  c.sharding = any_sharding(is_tensor_parallel);
  return c;
}

RC_GTEST_PROP(PlanBehindSharding, PlansAreCarriedOut, ()) {
  const ShardedCase c = any_sharded_case();
  RC_LOG() << c.sharding << ", tensor " << c.recipe.parallel.tensor << ", sequence "
           << c.recipe.parallel.sequence_parallel << ", layers " << c.model.layers << ", batch " << c.recipe.batch
           << ", passes " << c.recipe.accumulation << ", masters " << has_master_parameters(c.recipe) << '\n';
  const Trace before = rewritten(modelled_on(generate_step(c.model, c.recipe), test_machine()), c.sharding);
  const Bytes peak = simulate(before, machine_of_ranks(test_machine(), before), {}).tiers[0].peak_allocated;
  const auto percent = any_value<Bytes>(20, 100);
  const std::string policy = *rc::gen::element<std::string>(
      "plan:search=0", "plan:search=0", "plan:recompute=0,search=0", "plan:reruns=units,search=0", "plan:effort=1",
      "plan:search=0,executable=torch", "capuchin:min_bytes=0", "rotor:slots=100", "torch_sac:memory_budget=0.5",
      "torch_budget:memory_budget=0.5", "chen:mode=greedy", "swapadvisor:min_bytes=0", "g10:min_bytes=0",
      "superneurons:min_bytes=0,offload=dense", "torchtitan:mode=full", "checkpoint:mode=full");
  RC_TAG(policy.substr(0, policy.find(':')));
  const bool has_budget = policy.starts_with("plan") || policy.starts_with("capuchin") || policy.starts_with("rotor");
  const std::string asked = has_budget ? fmt::format("{},budget={}", policy, peak * percent / 100) : policy;
  RC_LOG() << asked << '\n';
  Trace after;
  try {
    after = rewritten(before, asked);
  } catch (const UsageError& refused) {  // nothing to run again, or nothing that PyTorch could carry out
    RC_LOG() << refused.what() << '\n';
    RC_ASSERT(std::string(refused.what()).find("carried out:") == std::string::npos);
    return;
  }
  RC_ASSERT(check(after) == std::vector<std::string>{});
  RC_ASSERT(races(after, 2) == std::vector<std::string>{});
  RC_ASSERT(contents_of(after) == contents_of(before));
  RC_CLASSIFY(has_note(after, "by copies"), "moves");
  RC_CLASSIFY(count(after, Phase::recompute) > 0, "runs again");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
