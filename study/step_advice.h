// Which plan for a step within a budget, which others there are, and how far it is from what any plan can reach.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/cycle/plan_certificate.h"
#include "study/advised_plan.h"
#include "study/observation.h"
#include "study/smallest_budget.h"
#include "study/step_layouts.h"
#include "study/study.h"
#include "study/watch.h"

namespace memwall {

struct AdviceRequest {
  Scenario scenario;                 // without policies; policies that it names come first
  std::string budget{};              // as a policy's parameter takes it; "" = the whole device
  std::string tiers = "host";        // where storages may wait: "host+nvme"
  std::string settings{};            // more parameters of `plan`: "robust=20,executable=torch"; may be ""
  std::uint32_t ranks = 0;           // data-parallel GPUs over which the step may be laid out anew; 0 = as it is
  bool smallest = true;              // look for the smallest budget that fits, too
  unsigned jobs = 1;                 // threads; the result is the same for any number
};

struct StepAdvice {
  Scenario scenario;                // that the plans are for: of the request, or of the best layout
  std::vector<StepLayout> layouts;  // that were compared, the best first; empty where none were asked for
  std::vector<AdvisedPlan> plans;   // the recommended first; then others that fit, the fastest first; then the rest
  Duration unlimited{};             // the step with unlimited memory
  bool moves_only = false;          // nothing may run again
  AdvisedPlan untouched, full_checkpointing;  // for the regret; full_checkpointing.policies is empty where refused
  PlanCertificate certificate;                // its seconds are of one step
  std::string peak_op;                // of certificate.peak, for people
  std::vector<std::string> lever_ops;  // of each of certificate.levers
  Bytes budget = 0;
  Bytes needed = 0;                  // what the step reserves for its storages as it is, with unlimited memory
  SmallestBudget smallest;           // bytes 0: not looked for
  std::string smallest_policy;       // that was asked, with the budget; "" = nothing needs to leave, or not looked for
  std::vector<std::string> refused;  // "rotor: ..." whose reason is a sentence
};

// `plan` as the request asks for it. `budget`: "8GiB", "" = the whole device; `more`: parameters beside.
std::string own_policy(const AdviceRequest& request, const std::string& budget, const std::string& more = "");

// What its budget is in bytes: what the device has for the step, where none is given. Throws as Study::prepare.
Bytes budget_bytes(Study& study, const AdviceRequest& request);

// The request with what was measured fed back: a budget less by as much as more memory was measured than simulated, and
// kernels and host time slower or faster. Throws UsageError where nothing is left of the budget.
AdviceRequest corrected(Study& study, AdviceRequest request, const Observation& observation);

// `watch` is told how far it is; null = nobody. Throws as Study::run, and UsageError where the machine has no way to a
// tier, or the layouts as layouts_of.
StepAdvice advise(Study& study, const AdviceRequest& request, Watch* watch = nullptr);

}  // namespace memwall
