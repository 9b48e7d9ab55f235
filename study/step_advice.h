// Which plan for a step within a budget, which others there are, and how far it is from what any plan can reach.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/cycle/plan_certificate.h"
#include "study/advice_request.h"
#include "study/advised_plan.h"
#include "study/smallest_budget.h"
#include "study/step_layouts.h"
#include "study/study.h"
#include "study/watch.h"

namespace memwall {

// What often helps where blocks find no place in one piece.
inline constexpr const char* kOtherSettings = "expandable_segments:True";

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
  std::string largest_op;              // of certificate.least_at, for people
  bool largest_updates = false;        // it is of the optimizer's step
  std::string given_budget;            // as it was asked for; "" = the whole device
  Bytes budget = 0;
  Bytes device = 0;                    // what the machine's GPU has for the step's storages
  // Of the GPU's memory that is there before the step and no storage of it: it lies beside the budget, and reserved sizes
  // have it.
  Bytes beside = 0;
  Bytes needed = 0;                  // what the step reserves for its storages as it is, with unlimited memory
  SmallestBudget smallest;           // bytes 0: not looked for
  bool is_too_long = false;          // it was asked for and not looked for: the step has too many ops
  std::string smallest_policy;       // that was asked, with the budget; "" = nothing needs to leave, or not looked for
  // A first plan under kOtherSettings of PyTorch's allocator, where it is faster by 1 % or the only one that fits.
  std::optional<AdvisedPlan> with_other_settings;
  std::vector<std::string> refused;  // "rotor: ..." whose reason is a sentence
};

// `watch` is told how far it is; null = nobody. Throws as Study::run, budget_bytes and layouts_of, and UsageError where
// the machine has no way to a tier.
StepAdvice advise(Study& study, const AdviceRequest& request, Watch* watch = nullptr);

}  // namespace memwall
