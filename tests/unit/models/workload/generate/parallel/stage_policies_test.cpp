// Policies on the ranks of a pipeline: each rank's program is rewritten as it would be alone, the ranks still meet, and
// what has no meaning for stages is refused by a sentence.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "policies/trace/phases.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/parallel_ranks.h"
#include "tests/support/policy_calls.h"
#include "tests/support/same_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Rewritten {
  Trace trace;
  std::string refusal;  // "" where it was rewritten
};

Rewritten rewritten(const Trace& trace, const std::string& policy) {
  const Machine machine = test_machine();
  try {
    return {apply_rewriters(trace, {parse_policy(policy)}, machine, *make_pricer(machine)), ""};
  } catch (const UsageError& error) {
    return {{}, error.what()};
  }
}

struct NamedJob {
  const char* name;
  Trace trace;
};

// Divided by layers alone, within layers too, and with two chunks on each GPU.
std::vector<NamedJob> jobs() {
  Recipe split = parallel_recipe(2, 2, 1, 3);
  split.parallel.sequence_parallel = true;
  std::vector<NamedJob> all;
  all.push_back({"p2", generate_step(small_gpt(4), parallel_recipe(1, 2, 1, 3))});
  all.push_back({"t2 p2", generate_step(small_gpt(4), split)});
  all.push_back({"p2 v2", generate_step(small_gpt(4), parallel_recipe(1, 2, 2, 4))});
  for (NamedJob& job : all) job.trace = modelled_on(std::move(job.trace), test_machine());
  return all;
}

// "" where the joined ranks were rewritten as each alone, or refused as one of them.
std::string difference(const Trace& job, const std::string& policy, std::set<std::string>& taken) {
  const Rewritten together = rewritten(job, policy);
  std::vector<Rewritten> alone;
  for (std::uint16_t i = 0; i < rank_count(job); ++i) alone.push_back(rewritten(one_rank(job, i), policy));
  for (const Rewritten& one : alone) {
    if (one.refusal.empty()) continue;
    return together.refusal.empty() ? "together it is taken, alone it says: " + one.refusal : "";
  }
  if (!together.refusal.empty()) return "alone it is taken, together it says: " + together.refusal;
  taken.insert(policy);
  for (std::uint16_t i = 0; i < alone.size(); ++i)
    if (const std::string found = program_difference(one_rank(together.trace, i), alone[i].trace); !found.empty())
      return fmt::format("rank {}: {}", i, found);
  SimulationOptions options;
  options.allocator = "ideal";
  simulate(together.trace, test_machine(), options);  // throws where ranks wait for each other
  return "";
}

TEST(StagePolicies, EachRankIsRewrittenAsItWouldBeAlone) {
  std::set<std::string> taken;
  for (const NamedJob& job : jobs())
    for (const auto& [name, calls] : policy_calls()) {
      const PolicyInfo& info = policy_named(name);
      if (info.kind == PolicyKind::pager || info.ranks != RankRule::each_alone) continue;
      for (const std::string& call : calls)
        EXPECT_EQ(difference(job.trace, call, taken), "") << job.name << " " << call;
    }
  for (const char* call : {"offload:what=optimizer,to=host", "offload:what=activations,to=host,min_bytes=0",
                           "plan:budget=1MiB,search=0"})
    EXPECT_TRUE(taken.contains(call)) << call;
  // Forward passes follow each other before the first backward pass: what is whose is not taken apart.
  for (const char* call : {"checkpoint:mode=full", "vdnn:min_bytes=0", "megatron", "selective:save=mm", "mincut", "chen"}) {
    EXPECT_FALSE(taken.contains(call)) << call;
    EXPECT_NE(rewritten(jobs().front().trace, call).refusal.find("follow each other before a backward pass"),
              std::string::npos)
        << call;
  }
  EXPECT_GE(taken.size(), 10u);
}

// Layers with collectives are computed again where that is permitted, and communicate again, as Megatron-LM's do.
TEST(StagePolicies, RecomputedLayersCommunicateAgain) {
  const Trace job = modelled_on(generate_step(small_gpt(4), parallel_recipe(2, 1, 1, 3)), test_machine());
  EXPECT_NE(rewritten(job, "checkpoint:mode=full").refusal.find("communicates with other ranks"), std::string::npos);
  const Rewritten again = rewritten(job, "checkpoint:mode=full,allow_collectives=1,early_stop=0");
  ASSERT_EQ(again.refusal, "");
  Recipe recipe = parallel_recipe(2, 1, 1, 3);
  recipe.checkpoint = ActivationCheckpoint::full;
  const Trace generated = generate_step(small_gpt(4), recipe);
  const auto recomputed = [](const Trace& t, OpKind kind) {
    std::size_t count = 0;
    for (const Op& op : t.ops) count += op.phase == Phase::recompute && op.kind == kind;
    return count;
  };
  EXPECT_EQ(recomputed(generated, OpKind::collective), 2u * 3 * 4) << "two of each layer and micro-batch";
  EXPECT_EQ(recomputed(again.trace, OpKind::collective), 24u);
}

// What is for ranks that hold the same parameters is refused; that of one rank alone may be taken.
TEST(StagePolicies, StagesHaveNothingInCommon) {
  const Trace job = modelled_on(generate_step(small_gpt(4), parallel_recipe(1, 2, 1, 3)), test_machine());
  EXPECT_FALSE(hold_the_same_parameters(job));
  EXPECT_TRUE(hold_the_same_parameters(one_rank(job, 1)));
  std::vector<RankProgram> twice{{0, one_rank(job, 0), {}}, {1, one_rank(job, 0), {}}};
  EXPECT_TRUE(hold_the_same_parameters(joined_ranks(std::move(twice))));
  std::size_t refused = 0;
  for (const auto& [name, calls] : policy_calls()) {
    if (policy_named(name).ranks == RankRule::each_alone) continue;
    for (const std::string& call : calls) {
      const std::string said = rewritten(job, call).refusal;
      EXPECT_NE(said.find("needs ranks that hold the same parameters, not stages of a pipeline, which the 2 of trace"),
                std::string::npos)
          << call << ": " << said;
      ++refused;
    }
  }
  EXPECT_GE(refused, 20u) << "zero, ddp, fsdp, deepspeed, megatron_optimizer, batch, accumulate";
}

// One pager serves each rank: with less memory than they need all ranks page and none waits for ever.
TEST(StagePolicies, APagerServesEachRank) {
  for (const NamedJob& job : jobs()) {
    Machine machine = test_machine();
    SimulationOptions options;
    options.allocator = "ideal";
    Bytes least = 0;
    for (const TierResult& tier : simulate(job.trace, machine, options).tiers)
      least = least == 0 ? tier.peak_allocated : std::max(least, tier.peak_allocated);
    machine.tiers.front().capacity = least * 3 / 4;
    const PolicySpec spec = parse_policy("lru:clock=host");
    const auto pager = spec.info->make_pager(spec.arguments);
    options.pager = pager.get();
    const SimulationResult result = simulate(job.trace, machine, options);
    EXPECT_FALSE(result.moves.empty()) << job.name;
    EXPECT_GT(result.gpu_span, Duration{}) << job.name;
  }
}

// What `accumulate` and `batch` count: the update behind the last backward pass is no forward pass.
TEST(StagePolicies, PassesAreTheMicroBatches) {
  for (const auto framework :
       {ParallelFramework::megatron, ParallelFramework::deepspeed, ParallelFramework::torchtitan})
    for (const std::int64_t count : {1, 3})
      for (const std::uint32_t data : {1u, 2u}) {
        Recipe recipe = parallel_recipe(2, 1, 1, count);
        recipe.parallel.framework = framework;
        recipe.parallel.sequence_parallel = true;
        if (framework != ParallelFramework::torchtitan) recipe.data_parallel = data;
        if (framework == ParallelFramework::megatron) recipe.parallel.main_gradients = MainGradients::fp32_fused;
        EXPECT_EQ(passes(generate_step(small_gpt(2), recipe)).size(), static_cast<std::size_t>(count))
            << static_cast<int>(framework) << " " << data;
      }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
