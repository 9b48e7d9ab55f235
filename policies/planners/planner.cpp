#include "policies/planners/planner.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <utility>

#include "policies/plan/plan_writer.h"
#include "policies/planners/repair.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

// All that the device holds beside what is not the step's own.
Bytes whole_device(const Trace& trace, const Machine& machine) {
  const int tier = machine.tier("hbm");
  if (tier < 0) throw UsageError("Machine '" + machine.name + "' has no memory 'hbm', which memory plans are for.");
  return machine.tiers[static_cast<std::size_t>(tier)].holds() - trace.untracked_bytes;
}

class PlannedStepRewriter : public Rewriter {
 public:
  PlannedStepRewriter(std::string name, Planner planner, Bytes budget)
      : name_(std::move(name)), planner_(std::move(planner)), budget_(budget) {}

  // Behind what `checkpoint` and `offload` do: the budget is for what they leave.
  int precedence() const override { return 5; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    const StepProfile profile(trace, machine);
    const RepairedPlan repaired = settle(profile, pricer);
    TraceEdit edit(trace, machine.host);
    write_plan(repaired.plan, profile.flow(), pricer, edit);
    Trace result = std::move(edit).apply();
    result.notes.push_back(note(profile, repaired));
    if (budget_ > 0) result.budgets.push_back({name_, budget_, repaired.over});
    return result;
  }

  std::optional<MemoryPlan> memory_plan(const Trace& trace, const Machine& machine,
                                        const Pricer& pricer) const override {
    const StepProfile profile(trace, machine);
    return settle(profile, pricer).plan;
  }

 private:
  Budget budget(const StepProfile& profile) const {
    return {budget_ > 0 ? budget_ : whole_device(profile.trace(), profile.machine())};
  }

  RepairedPlan settle(const StepProfile& profile, const Pricer& pricer) const {
    return repaired_plan(planner_, profile, budget(profile), pricer);
  }

  std::string note(const StepProfile& profile, const RepairedPlan& repaired) const {
    Bytes moved = 0;
    std::size_t movers = 0;
    for (const StorageDecision& d : repaired.plan.storages) {
      if (d.copies.empty()) continue;
      ++movers;
      moved += profile.trace().storages[d.storage].bytes;
    }
    const PlanEstimate& e = repaired.estimate;
    std::string text = fmt::format("{}: budget {}; ", name_, human_bytes(budget(profile).device));
    if (repaired.over > 0)
      text += "no plan was found that keeps to it, " + human_bytes(repaired.over) + " more are needed; ";
    if (movers > 0)
      text += fmt::format("{} ({}) leave by copies, {} out and {} back", counted_text(movers, "storage"),
                          human_bytes(moved), human_bytes(e.bytes_out), human_bytes(e.bytes_in));
    if (e.rerun_ops > 0)
      text += fmt::format("{}{} of {} run again", movers > 0 ? "; " : "", counted_text(e.rerun_ops, "op"),
                          human_time(e.rerun_time));
    if (movers == 0 && e.rerun_ops == 0) text += "nothing leaves the device";
    text += ".";
    return text;
  }

  std::string name_;
  Planner planner_;
  Bytes budget_;
};

// By name: what makes them. Constructed on first use.
std::map<std::string, std::function<Planner(const PolicyArguments&)>>& makers() {
  static std::map<std::string, std::function<Planner(const PolicyArguments&)>> all;
  return all;
}

}  // namespace

Planner planner_named(const std::string& text) {
  const PolicySpec spec = parse_policy(text);
  const auto maker = makers().find(spec.info->name);
  if (maker == makers().end()) throw UsageError("Policy '" + spec.info->name + "' is no planner of memory plans.");
  return maker->second(spec.arguments);
}

RegisterPlanner::RegisterPlanner(PlannerInfo info) {
  PolicyInfo policy;
  policy.name = info.name;
  policy.sentence = std::move(info.sentence);
  policy.kind = PolicyKind::memory_plan;
  policy.needs = {.timing = true, .allocations = true, .dataflow = true};
  policy.parameters = std::move(info.parameters);
  policy.parameters.push_back(bytes("budget", Unset{"device"}, 1,
                                    "device memory that the step's storages may take at once; device: all that the "
                                    "machine has for them."));
  makers()[info.name] = info.make;
  policy.make_rewriter = [name = info.name, make = std::move(info.make)](const PolicyArguments& arguments) {
    const Bytes budget = arguments.is_set("budget") ? arguments.bytes("budget") : 0;
    return std::make_unique<PlannedStepRewriter>(name, make(arguments), budget);
  };
  RegisterPolicy registered{std::move(policy)};
}

}  // namespace memwall
