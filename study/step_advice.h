// Which plan for a step within a budget, which others there are, and how far it is from what any plan can reach.
#pragma once

#include <string>
#include <vector>

#include "policies/cycle/plan_certificate.h"
#include "study/study.h"

namespace memwall {

struct AdviceRequest {
  Scenario scenario;                 // without policies; policies that it names come first
  std::string budget;                // as a policy's parameter takes it; "" = the whole device
  std::string tiers = "host";        // where storages may wait: "host+nvme"
  std::string settings;              // more parameters of `plan`: "robust=20,executable=torch"; may be ""
};

// One plan, simulated.
struct AdvisedPlan {
  std::vector<std::string> policies;  // --policy values; none: the step as it is
  std::string why;                    // one sentence: what it does, or why it is not the first
  bool fits = false;                  // on the machine, and within the budget
  Duration step_time{}, rerun_time{};
  Bytes peak_reserved = 0, missing = 0;
  Bytes bytes_out = 0, bytes_in = 0;  // that the plan copies
};

struct StepAdvice {
  std::vector<AdvisedPlan> plans;   // the recommended first; then others that fit, the fastest first; then the rest
  Duration unlimited{};             // the step with unlimited memory
  AdvisedPlan untouched, full_checkpointing;  // for the regret; full_checkpointing.policies is empty where refused
  PlanCertificate certificate;
  std::string peak_op;                // of certificate.peak, for people
  std::vector<std::string> lever_ops;  // of each of certificate.levers
  Bytes budget = 0;
  std::vector<std::string> refused;  // "rotor: ..." whose reason is a sentence
};

// `progress`: share done. Throws as Study::run, and UsageError where the machine has no way to a tier.
StepAdvice advise(Study& study, const AdviceRequest& request, const std::function<void(double)>& progress = {});

}  // namespace memwall
