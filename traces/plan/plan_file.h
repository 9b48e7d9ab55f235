// A memory plan as a file: JSON that memwall writes, and that other programs may write, too. See FORMAT.md.
//
// A plan names storages and ops by their numbers in one trace. The file says which: its numbers of ops and storages and
// a fingerprint of its program. A plan for another trace is refused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/policy/applied_policy.h"
#include "sim/policy/memory_plan.h"
#include "sim/policy/plan_realization.h"
#include "sim/trace/trace.h"
#include "traces/plan/plan_expectation.h"
#include "traces/plan/plan_step.h"

namespace memwall {

// Of what a plan depends on: kinds, threads and streams of ops, what they use and in which version, sizes and places of
// storages. Not of times and names: FNV-1a, 64 bits.
std::uint64_t program_fingerprint(const Trace& trace);

// What a file may hold beside the decisions.
struct PlanParts {
  std::optional<PlanRealization> realization{};
  std::optional<PlanExpectation> expected{};
  std::vector<AppliedPolicy> policies{};  // in the order in which they are applied, the one that made the plan last
  PlanStep step{};
};

// `made_by`: a policy's text, or a planner's name. Same plan and parts, same bytes.
std::string to_json(const MemoryPlan& plan, const Trace& trace, const std::string& made_by,
                    const PlanParts& parts = {});

// Throws InputError naming file, place in it, what was found and what was expected, where it is no plan, of another
// version, for another trace, or names what that or `machine` does not have. Whether the plan can be carried out is for
// policies/plan/plan_check.h to say.
MemoryPlan read_plan(const std::filesystem::path& path, const Trace& trace, const Machine& machine);
// The same of a text. `name`: what sentences call it.
MemoryPlan plan_of_text(std::string_view text, const std::string& name, const Trace& trace, const Machine& machine);

}  // namespace memwall
