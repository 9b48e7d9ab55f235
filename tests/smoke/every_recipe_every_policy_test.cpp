// Is a step with a changed recipe a step like any other? Every recipe and every policy behind it, on captures of five
// networks: what comes out is sound and runs, or is refused in a sentence.
#include <gtest/gtest.h>

#include <filesystem>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "policies/solver/linear_program.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/policy_calls.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace captured(const std::string& network, const Machine& machine) {
  const auto folder = std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures/recipes";
  return modelled_on(read_mwc(folder / (network + "-base.mwc.gz")).trace, machine);
}

// The step with both, or nothing where that is refused.
std::optional<Trace> step_with(const Trace& base, const std::string& recipe, const PolicySpec& policy,
                               const Machine& machine) {
  std::vector<PolicySpec> specs{parse_policy(recipe)};
  if (policy.info->make_rewriter) specs.push_back(policy);
  try {
    return apply_rewriters(base, specs, machine, *make_pricer(machine));
  } catch (const UsageError& error) {
    EXPECT_GT(std::string(error.what()).size(), 30u);
    return std::nullopt;
  }
}

class EveryRecipe : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(EveryRecipe, StandsBeforeEveryPolicy) {
  const auto& [network, recipe] = GetParam();
  const Machine machine = load_machine("h100-sxm-80gb");
  const Trace base = captured(network, machine);
  std::size_t ran = 0, refused = 0;
  for (const auto& [name, calls] : policy_calls()) {
    const bool other_recipe = policy_named(name).kind == PolicyKind::recipe;
    const bool asked = name == "fusion" || !calls.empty();
    if (!asked || other_recipe || (name == "checkmate" && !LinearProgram::is_available())) continue;
    SCOPED_TRACE(name);
    const PolicySpec policy = parse_policy(calls.empty() ? name : calls.front());
    const std::optional<Trace> step = step_with(base, recipe, policy, machine);
    (step ? ran : refused) += 1;
    if (!step) continue;
    EXPECT_EQ(check(*step), std::vector<std::string>{});
    const auto pager = policy.info->make_pager ? policy.info->make_pager(policy.arguments) : nullptr;
    SimulationOptions options;
    options.pager = pager.get();
    EXPECT_GT(simulate(*step, machine, options).end, Time{});
  }
  EXPECT_GT(ran, 3 * refused) << "most policies take a step with another recipe";
}

std::string name_of(const testing::TestParamInfo<EveryRecipe::ParamType>& pair) {
  std::string name = std::string(std::get<0>(pair.param)) + "_" + std::get<1>(pair.param);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(, EveryRecipe,
                         testing::Combine(testing::Values("gpt", "llama", "bert", "resnet", "vit"),
                                          testing::Values("optimizer:adamw_8bit", "optimizer:sgd,kernels=for_loop",
                                                          "accumulate:2")),
                         name_of);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
