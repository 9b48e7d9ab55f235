// The list of policies. A policy is one file in policies/ that ends with one registration, which declares what
// everybody else asks: kind, needs, ranks, parameters. Nothing else in the program knows its name.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/policy/applied_policy.h"
#include "sim/policy/arguments.h"
#include "sim/policy/pager.h"
#include "sim/policy/rewriter.h"

namespace memwall {

// What a policy changes. Rewriters run in this order, whatever the order of flags.
enum class PolicyKind : std::uint8_t {
  precision,
  batch,
  recipe,  // how the program trains: its optimizer
  fusion,
  model_parallelism,
  sharding,
  memory_plan,  // what is re-run, then what is moved
  launches,     // how the host launches what is left
  pager  // decides while the step runs
};
std::string_view to_string(PolicyKind kind);

// Of a trace that holds programs of several ranks.
enum class RankRule : std::uint8_t {
  each_alone,    // each rank's program is rewritten by itself, its rendezvous kept
  each_alike,    // likewise, but of ranks that hold the same parameters: refused for stages of a pipeline
  each_meeting,  // likewise, and the collectives that it adds are those of all ranks (Trace::ranks of its result): they meet
  one_program    // refused: expects a trace of one rank
};
std::string_view to_string(RankRule rule);

// What a policy says of a trace that knows enough, before it is asked to change it.
struct PolicyAnswer {
  std::string refusal;  // a sentence, "" = it takes the trace
  std::string setting;  // that must be given for this trace: "from=N"; "" = none
  std::string reason;   // of that setting, without a full stop
};

struct PolicyInfo {
  std::string name;
  std::string sentence;
  PolicyKind kind = PolicyKind::precision;
  Knowledge needs{};  // what the trace must know, whatever the arguments
  RankRule ranks = RankRule::each_alone;
  // Several with different arguments compose; else one of a kind, and in it of a Rewriter::precedence, has a meaning.
  bool may_repeat = false;
  std::vector<ParameterInfo> parameters{};
  std::function<PolicyAnswer(const Trace&)> answer{};  // to its defaults; empty: whatever knows enough is taken
  // By kind, one of the two is set.
  std::function<std::unique_ptr<Rewriter>(const PolicyArguments&)> make_rewriter{};
  std::function<std::unique_ptr<Pager>(const PolicyArguments&)> make_pager{};
};

// All registered policies, by name. Constructed on first use.
const std::map<std::string, PolicyInfo>& policies();

// Throws UsageError, naming the nearest valid name.
const PolicyInfo& policy_named(const std::string& name);
// The first of that kind by name. REQUIRES: there is one.
const PolicyInfo& policy_of(PolicyKind kind);

// Used by the registration objects in policies/: `const RegisterPolicy registered_halve{{.name = ...}};`
struct RegisterPolicy {
  explicit RegisterPolicy(PolicyInfo info);
};

// A parsed "--policy" or "--pager" value. Throws UsageError, naming the nearest valid name.
struct PolicySpec {
  const PolicyInfo* info = nullptr;
  PolicyArguments arguments;
  std::string text;  // as given
};
PolicySpec parse_policy(const std::string& text);
// With every setting, as its parameters declare it.
AppliedPolicy applied_policy(const PolicySpec& spec);

// What a policy's rank rule finds wrong with a trace: "needs a trace of one rank"; "" = nothing.
std::string rank_obstacle(const PolicyInfo& info, const Trace& trace);

// The names of what is needed and not known: "timing", "allocations", "dataflow", "modules", "shapes".
std::vector<std::string> missing_knowledge(const Knowledge& needs, const Knowledge& has);
// Throws UsageError where the trace does not know all that the policy declares, and `more`.
void require_knowledge(const PolicySpec& spec, const Trace& trace, const Knowledge& more = {});

// Applies rewriters in the fixed order of kinds, checking knowledge before and the trace after each.
// Throws UsageError for two of one kind and precedence, unless they may repeat and differ, and where a rank rule
// forbids the trace. `restriction`, `allocator` and `cache`: of memory plans (Rewriter::restrict_plans,
// simulate_plans_with, remember_plans_in); keys in `cache` are texts of policies: it is of one trace, machine,
// restriction and allocator.
Trace apply_rewriters(const Trace& trace, const std::vector<PolicySpec>& specs, const Machine& machine,
                      const Pricer& pricer, const PlanRestriction& restriction = {},
                      const PlanAllocator& allocator = {}, const PlanCache& cache = {});

// A memory plan of a policy that others stand behind, and the trace that it is for.
struct EarlierPlan {
  Trace trace;
  MemoryPlan plan;
};

// A trace and a memory plan for it.
struct PlannedStep {
  Trace trace;  // after all rewriters but the one that makes the plan
  MemoryPlan plan;
  std::string made_by;                        // that one, as given, and the policies that it stands behind
  std::vector<AppliedPolicy> policies{};      // in the order in which they are applied, that one last
  std::vector<EarlierPlan> earlier{};         // in the order in which they are applied
  std::optional<NamedOptimizer> optimizer{};  // Rewriter::named_optimizer
};

// What the last rewriter that makes a memory plan decides, behind all others; where none does, a plan that decides
// nothing, behind all of them. Throws as apply_rewriters does, and where there are no rewriters or the trace holds
// programs of several ranks.
PlannedStep plan_rewriters(const Trace& trace, const std::vector<PolicySpec>& specs, const Machine& machine,
                           const Pricer& pricer, const PlanRestriction& restriction = {},
                           const PlanAllocator& allocator = {}, const PlanCache& cache = {});

}  // namespace memwall
