// Is a step with a changed recipe a step like any other? Every recipe and every policy beside it, on captures of five
// networks and on generated steps of the same: what comes out is sound and runs, or is refused in a sentence.
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

constexpr const char* kCaptured = "captured";
constexpr const char* kCompiled = "compiled";  // a capture of compiled code

// Of a capture, or generated; in fp32 where another precision is asked for.
Trace step_of(const std::string& network, const std::string& source, bool in_fp32, const Machine& machine) {
  const auto captured = [&](const char* end) {
    const auto folder = std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures/recipes";
    return modelled_on(read_mwc(folder / (network + end)).trace, machine);
  };
  if (source == kCompiled) return captured("-compiled_layers.mwc.gz");
  if (source == kCaptured) return captured(in_fp32 ? "-fp32.mwc.gz" : "-base.mwc.gz");
  Recipe recipe;
  recipe.batch = 2;
  if (in_fp32) recipe.precision = Precision::fp32, recipe.attention = Attention::plain;
  for (const SmallNetwork& small : small_networks())
    if (small.name == network) return modelled_on(generate_step(small.model, recipe), machine);
  return {};
}

// "compile + cuda_graphs", those of pagers left out.
std::vector<PolicySpec> rewriters_of(std::string calls) {
  std::vector<PolicySpec> specs;
  while (!calls.empty()) {
    const std::size_t plus = std::min(calls.find(" + "), calls.size());
    if (PolicySpec spec = parse_policy(calls.substr(0, plus)); spec.info->make_rewriter)
      specs.push_back(std::move(spec));
    calls.erase(0, plus + 3);
  }
  return specs;
}

// The step with all of them, or nothing where that is refused.
std::optional<Trace> step_with(const Trace& base, const std::string& calls, const Machine& machine) {
  try {
    return apply_rewriters(base, rewriters_of(calls), machine, *make_pricer(machine));
  } catch (const UsageError& error) {
    EXPECT_GT(std::string(error.what()).size(), 30u);
    return std::nullopt;
  }
}

// Policies that change what the program is are asked by themselves.
bool is_asked_beside(const std::string& name, const std::vector<std::string>& calls) {
  const PolicyKind kind = policy_named(name).kind;
  if (kind == PolicyKind::precision || kind == PolicyKind::recipe || kind == PolicyKind::launches) return false;
  if (name == "checkmate" && !LinearProgram::is_available()) return false;
  return name == "fusion" || !calls.empty();
}

class EveryRecipe : public testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {};

TEST_P(EveryRecipe, StandsBesideEveryPolicy) {
  const auto& [network, source, recipe] = GetParam();
  const Machine machine = load_machine("h100-sxm-80gb");
  const Trace base = step_of(network, source, std::string_view(recipe).starts_with("precision"), machine);
  ASSERT_FALSE(base.ops.empty());
  if (!step_with(base, recipe, machine)) return;  // refused in a sentence, whatever stands beside it
  std::size_t ran = 0, refused = 0;
  for (const auto& [name, calls] : policy_calls()) {
    if (!is_asked_beside(name, calls)) continue;
    SCOPED_TRACE(name);
    const std::string call = calls.empty() ? name : calls.front();
    const std::optional<Trace> step = step_with(base, std::string(recipe) + " + " + call, machine);
    (step ? ran : refused) += 1;
    if (!step) continue;
    EXPECT_EQ(check(*step), std::vector<std::string>{});
    const PolicySpec policy = parse_policy(call);
    const auto pager = policy.info->make_pager ? policy.info->make_pager(policy.arguments) : nullptr;
    SimulationOptions options;
    options.pager = pager.get();
    EXPECT_GT(simulate(*step, machine, options).end, Time{});
  }
  EXPECT_GT(ran, 3 * refused) << "most policies take a step with another recipe";
}

std::string name_of(const testing::TestParamInfo<EveryRecipe::ParamType>& triple) {
  std::string name =
      std::string(std::get<0>(triple.param)) + "_" + std::get<1>(triple.param) + "_" + std::get<2>(triple.param);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

const auto kRecipes =
    testing::Values("optimizer:adamw_8bit", "optimizer:adamw_8bit,paged=1", "optimizer:sgd,kernels=for_loop",
                    "accumulate:2", "loss:chunked,chunks=4", "loss:fused_linear_cross_entropy", "prune", "compile",
                    "compile + cuda_graphs", "precision:amp_bf16", "precision:bf16 + attention:flash",
                    "precision:amp_fp16", "precision:fp8", "attention:math", "precision:amp_bf16 + attention:math");

INSTANTIATE_TEST_SUITE_P(, EveryRecipe,
                         testing::Combine(testing::Values("gpt", "llama", "bert", "resnet", "vit"),
                                          testing::Values(kCaptured, "generated"), kRecipes),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Compiled, EveryRecipe,
                         testing::Combine(testing::Values("gpt", "llama"), testing::Values(kCompiled), kRecipes),
                         name_of);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
