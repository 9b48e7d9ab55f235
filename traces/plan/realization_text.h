// The parts of a plan's file that a program executes and that it is held against: realization and expected, written
// and read. Internal to traces/plan.
#pragma once

#include "sim/json_text.h"
#include "sim/policy/memory_plan.h"
#include "sim/policy/plan_realization.h"
#include "traces/plan/plan_expectation.h"
#include "traces/plan/plan_json.h"

namespace memwall {

void write_realization(JsonText& json, const PlanRealization& realization, const std::vector<TransferStyle>& tiers);
void write_expectation(JsonText& json, const PlanExpectation& expected);

// Throw InputError. `tiers`: of the plan.
PlanRealization read_realization(const PlanJson& json, simdjson::dom::object from,
                                 const std::vector<TransferStyle>& tiers);
PlanExpectation read_expectation(const PlanJson& json, simdjson::dom::object from);

}  // namespace memwall
