#include "study/advice_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>

#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/machine/device_memory.h"
#include "sim/policy/given_budget.h"
#include "sim/policy/registry.h"
#include "sim/trace/ranks.h"
#include "sim/words.h"
#include "study/policy_text.h"

namespace memwall {
namespace {

// Times that differ by less were measured well.
constexpr double kSameTime = 0.001;

void require_tiers(const AdviceRequest& request, const Machine& machine) {
  std::vector<std::string> possible;
  for (const Tier& tier : machine.tiers)
    if (tier.name != "hbm") possible.push_back(tier.name);
  for (const std::string& name : tiers_of(request)) {
    if (name != "hbm" && machine.tier(name) >= 0) continue;
    throw UsageError(fmt::format("--tiers {}: {}; expected one or several of {}, joined by '+'.", request.tiers,
                                 name == "hbm" ? "hbm is the memory of the GPU itself"
                                               : fmt::format("machine '{}' has no memory '{}'", machine.name, name),
                                 enumerated(possible)));
  }
}

void require_one_rank(const Trace& trace) {
  if (rank_count(trace) > 1)
    throw UsageError(fmt::format("{}: it holds {} ranks; expected a step of one rank, whose memory one budget is for. "
                                 "`memwall run --policy plan:budget=...` plans each rank by itself, `memwall import "
                                 "--rank N -o STEP.mwt` leaves one.",
                                 trace.name, rank_count(trace)));
}

}  // namespace

// Words become parameters of a policy, where a comma would begin another one.
void require_plan_words(const std::string& budget, const std::string& robust) {
  for (const auto& [option, word, example] :
       {std::tuple("--budget", &budget, "24GiB, 60%"), std::tuple("--robust", &robust, "20%")})
    if (word->find_first_of(",=:") != std::string::npos)
      throw UsageError(fmt::format("{} {}: expected one value ({}).", option, *word, example));
  if (robust.starts_with("0."))
    throw UsageError(fmt::format("--robust {}: that is less than a hundredth; expected a share in % (20%).", robust));
  if (!budget.empty() && std::ranges::all_of(budget, [](char c) { return c >= '0' && c <= '9'; }))
    throw UsageError(
        fmt::format("--budget {0}: expected a size with its unit ({0}GiB) or a share of the device (60%).", budget));
}

// Beneath the plan stands what changes the step; a second plan of all its memory would leave this one nothing.
void require_plannable(const std::vector<std::string>& policies) {
  for (const std::string& text : policies) {
    const PolicyInfo& info = *parse_policy(text).info;
    if (info.kind == PolicyKind::memory_plan &&
        std::ranges::any_of(info.parameters, [](const ParameterInfo& p) { return p.name == "budget"; }))
      throw UsageError(
          fmt::format("--policy {}: it plans the memory of the step itself; expected what stands beneath a "
                      "plan (batch:32, checkpoint, zero). memwall compare-policies holds planners against "
                      "each other.",
                      text));
  }
}

std::vector<std::string> tiers_of(const AdviceRequest& request) {
  std::vector<std::string> names;
  std::istringstream in(request.tiers);
  for (std::string name; std::getline(in, name, '+');) names.push_back(name);
  return names;
}

std::string own_policy(const AdviceRequest& request, const std::string& budget, const std::string& more) {
  std::string policy = with_parameters("plan", budget.empty() ? "" : "budget=" + budget);
  if (request.tiers != "host") policy = with_parameters(policy, "tiers=" + request.tiers);
  return with_parameters(with_parameters(policy, request.settings), more);
}

Bytes budget_bytes(Study& study, const AdviceRequest& request) {
  const PreparedStep step = study.prepare(request.scenario);
  const PolicyArguments arguments = parse_policy(own_policy(request, request.budget)).arguments;
  require_one_rank(*step.trace);
  require_tiers(request, *step.machine);
  GivenBudget budget;
  if (!request.budget.empty()) budget = {arguments.bytes("budget"), arguments.share("budget")};
  return budget.of(device_bytes_for(*step.trace, *step.machine));
}

Bytes device_bytes(Study& study, const AdviceRequest& request) {
  const PreparedStep step = study.prepare(request.scenario);
  return device_bytes_for(*step.trace, *step.machine);
}

AdviceRequest corrected(Study& study, AdviceRequest request, const Observation& observation) {
  if (const Bytes more = observation.more_memory(); more > 0) {
    const Bytes budget = budget_bytes(study, request);
    if (budget - more < kBudgetUnit)
      throw UsageError(
          fmt::format("--observed: {} more memory was measured than is simulated, and the budget is {}: "
                      "nothing is left to plan for; expected a larger --budget.",
                      human_bytes(more), human_bytes(budget)));
    request.budget = fmt::format("{}MiB", (budget - more) / kBudgetUnit);
  }
  if (const double ratio = observation.time_ratio(); std::abs(ratio - 1) >= kSameTime)
    request.scenario.scale.push_back(fmt::format("kernels={0:.4g},host={0:.4g}", ratio));
  return request;
}

}  // namespace memwall
