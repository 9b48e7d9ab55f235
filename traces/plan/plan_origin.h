// Where a plan's file says that it comes from: the policies that made the step, and that step; written and read.
// Internal to traces/plan.
#pragma once

#include <vector>

#include "sim/json_text.h"
#include "sim/policy/applied_policy.h"
#include "traces/plan/plan_json.h"
#include "traces/plan/plan_step.h"

namespace memwall {

// Members of the document that is open. What is empty, or unknown, is not written.
void write_policies(JsonText& json, const std::vector<AppliedPolicy>& policies);
void write_step(JsonText& json, const PlanStep& step);

// Of the document's object. Throw InputError.
std::vector<AppliedPolicy> read_policies(const PlanJson& json, simdjson::dom::object root);
PlanStep read_step(const PlanJson& json, simdjson::dom::object root);

}  // namespace memwall
