// What is asked of a plan for a step: the step, the budget, the memories where its storages may wait.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "study/observation.h"
#include "study/study.h"

namespace memwall {

struct AdviceRequest {
  Scenario scenario;           // without policies; policies that it names come first
  std::string budget{};        // as a policy's parameter takes it; "" = the whole device
  std::string tiers = "host";  // where storages may wait: "host+nvme"
  std::string settings{};      // more parameters of `plan`: "robust=20,executable=torch"; may be ""
  std::uint32_t ranks = 0;     // data-parallel GPUs over which the step may be laid out anew; 0 = as it is
  bool smallest = true;        // look for the smallest budget that fits, too
  unsigned jobs = 1;           // threads; the result is the same for any number
};

// Budgets are looked for in whole units.
inline constexpr Bytes kBudgetUnit = MiB(1);

// Before a request is made of words. Throw UsageError: for a word that would become several parameters of `plan`, for a
// budget without a unit; for a policy that plans all of the step's memory itself, beneath the plan that is asked for.
void require_plan_words(const std::string& budget, const std::string& robust);
void require_plannable(const std::vector<std::string>& policies);

// Where storages may wait, by name.
std::vector<std::string> tiers_of(const AdviceRequest& request);

// `plan` as the request asks for it. `budget`: "8GiB", "" = the whole device; `more`: parameters beside.
std::string own_policy(const AdviceRequest& request, const std::string& budget, const std::string& more = "");

// What its budget is in bytes: what the device has for the step, where none is given. Throws as Study::prepare, and
// UsageError where the step holds several ranks, the machine lacks one of the tiers, or one is the GPU's own memory.
Bytes budget_bytes(Study& study, const AdviceRequest& request);
// What the machine's GPU has for the storages of the step. Throws as budget_bytes.
Bytes device_bytes(Study& study, const AdviceRequest& request);

// The request with what was measured fed back: a budget less by as much as more memory was measured than simulated, and
// kernels and host time slower or faster. Throws UsageError where nothing is left of the budget.
AdviceRequest corrected(Study& study, AdviceRequest request, const Observation& observation);

}  // namespace memwall
