// Does every change of a program's recipe compose with every policy that changes what a step keeps, on steps of every
// kind at hand? Each pair runs and is sound, or is refused by a sentence.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/generate/generate.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "policies/solver/linear_program.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/policy_calls.h"
#include "tests/support/small_networks.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

bool changes_a_recipe(const PolicyInfo& info) {
  return info.kind == PolicyKind::precision || info.kind == PolicyKind::recipe || info.name == "compile";
}

bool changes_memory(const PolicyInfo& info) {
  return info.kind == PolicyKind::memory_plan || info.kind == PolicyKind::pager || info.kind == PolicyKind::sharding ||
         info.kind == PolicyKind::batch;
}

// Of recipes that need what the step of tests/support/policy_calls.h does not have.
const std::vector<std::string> kMoreRecipes = {"loss:chunked,chunks=4", "loss:fused_linear_cross_entropy"};

// Of recipes all calls that are listed, of others the first of each.
std::vector<std::string> calls_of(bool (*wanted)(const PolicyInfo&)) {
  const bool all = wanted == changes_a_recipe;
  std::vector<std::string> calls = all ? kMoreRecipes : std::vector<std::string>{};
  for (const auto& [name, listed] : policy_calls()) {
    if (!wanted(policy_named(name)) || (name == "checkmate" && !LinearProgram::is_available())) continue;
    calls.insert(calls.end(), listed.begin(), all || listed.empty() ? listed.end() : listed.begin() + 1);
  }
  return calls;
}

// A sentence that says more than that something is wrong.
bool is_a_sentence(const std::string& text) { return text.size() > 30 && text.find(' ') != text.npos; }

class RecipesWithMemoryPolicies : public testing::TestWithParam<const char*> {
 protected:
  static const Machine& machine() {
    static const Machine loaded = load_machine("h100-sxm-80gb");
    return loaded;
  }

  // "gpt_captured" or "gpt_generated".
  static Trace step() {
    const std::string name = GetParam(), network = name.substr(0, name.find('_'));
    if (name.ends_with("captured")) {
      const auto folder = std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures/recipes";
      return modelled_on(read_mwc(folder / (network + "-base.mwc.gz")).trace, machine());
    }
    Recipe recipe;
    recipe.batch = 2;
    for (const SmallNetwork& small : small_networks())
      if (small.name == network) return modelled_on(generate_step(small.model, recipe), machine());
    return {};
  }

  // After both; nothing where that is refused, which must be by a sentence.
  static std::optional<Trace> changed(const Trace& trace, const std::vector<std::string>& calls) {
    std::vector<PolicySpec> rewriters;
    for (const std::string& call : calls)
      if (PolicySpec spec = parse_policy(call); !spec.info->make_pager) rewriters.push_back(std::move(spec));
    const auto pricer = make_pricer(machine());
    try {
      return apply_rewriters(trace, rewriters, machine(), *pricer);
    } catch (const UsageError& error) {
      EXPECT_TRUE(is_a_sentence(error.what())) << error.what();
      return std::nullopt;
    }
  }

  static void expect_sound(const Trace& trace, const std::string& memory) {
    ASSERT_EQ(check(trace), std::vector<std::string>{});
    const PolicySpec spec = parse_policy(memory);
    const auto pager = spec.info->make_pager ? spec.info->make_pager(spec.arguments) : nullptr;
    SimulationOptions options;
    options.pager = pager.get();
    const SimulationResult result = simulate(trace, machine(), options);
    EXPECT_GT(result.end, Time{});
    EXPECT_TRUE(result.fits);
    for (const TierResult& tier : result.tiers) EXPECT_LE(tier.peak_usage.requested, tier.peak_allocated);
  }
};

TEST_P(RecipesWithMemoryPolicies, RunOrAreRefusedByASentence) {
  const Trace trace = step();
  ASSERT_FALSE(trace.ops.empty());
  std::size_t ran = 0, refused = 0;
  for (const std::string& recipe : calls_of(changes_a_recipe)) {
    if (!changed(trace, {recipe})) continue;  // it has no meaning for this step, whatever stands beside it
    for (const std::string& memory : calls_of(changes_memory)) {
      SCOPED_TRACE(recipe + " with " + memory);
      const std::optional<Trace> both = changed(trace, {recipe, memory});
      both ? ++ran : ++refused;
      if (both) expect_sound(*both, memory);
    }
  }
  EXPECT_GT(ran, 50u);
  RecordProperty("ran", std::to_string(ran));
  RecordProperty("refused", std::to_string(refused));
}

INSTANTIATE_TEST_SUITE_P(, RecipesWithMemoryPolicies,
                         testing::Values("gpt_captured", "llama_captured", "bert_captured", "resnet_captured",
                                         "vit_captured", "gpt_generated", "llama_generated", "bert_generated",
                                         "vit_generated", "resnet_generated"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
