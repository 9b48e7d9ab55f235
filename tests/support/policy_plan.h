// The memory plan that a policy makes for a step on the test machine, as `memwall plan` writes it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "policies/plan/plan_check.h"
#include "sim/policy/registry.h"
#include "tests/support/test_machine.h"

namespace memwall {

// It can be carried out: else the test fails.
inline MemoryPlan policy_plan(const Trace& step, const std::string& policy) {
  const Machine machine = test_machine();
  MemoryPlan plan = plan_rewriters(step, {parse_policy(policy)}, machine, *test_pricer(machine)).plan;
  EXPECT_EQ(check_plan(plan, step, Dataflow(step)), std::vector<std::string>{}) << policy;
  return plan;
}

}  // namespace memwall
