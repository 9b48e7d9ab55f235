// Keeps, in each block of the network, the results that take longest to compute again and fit into a share of its
// bytes.
//
// PyTorch's tools for selective activation checkpointing (torch/distributed/_tools/sac_estimator.py at pytorch
// 09c3cf08ca92 and sac_ilp.py at 01e1011dab46; read, not copied): SACEstimator's numbers of each op of a module (bytes
// of its results, time), and
//   milp    get_optimal_checkpointing_policy_per_module: a 0/1 knapsack; kept are the ops of the most time whose bytes
//           are at most the share memory_budget of all;
//   greedy  SACEstimator's order: run again is what saves most bytes per second (MSPS), until the rest fits.
// Random ops are kept all or none, and the last result counts no bytes: the module hands it out. What is not kept runs
// again when backward comes to the module (create_selective_checkpoint_contexts).
//
// Left out: sac_milp, the program over all modules and FSDP's units at once; the piecewise linear curves that it needs;
// force_store_random, for modules that are called without tensors. Deviations: a module is a block, or one that
// modules= names; times are the step's own, not a roofline's; the knapsack is solved exactly (theirs to within 5 %, in
// at most 10 s); what works in place runs again with what it works on, since PyTorch refuses to keep it; views are no
// ops of a trace. Where no memory_budget is given, one for all modules is searched for the budget, in steps of 0.05.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "policies/planners/kept_units.h"
#include "policies/planners/knapsack.h"
#include "policies/planners/planner.h"
#include "policies/planners/share_search.h"
#include "policies/planners/unit_reruns.h"
#include "policies/trace/rerun_rules.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

// Ops of a unit that are kept or run again together.
struct SacGroup {
  std::vector<OpId> ops;  // ascending
  Bytes bytes = 0;
  Duration time{};
};

class SacUnit {
 public:
  SacUnit(const StepProfile& profile, const RecomputeUnit& unit) : p_(profile), t_(profile.trace()) {
    find_in_place(unit);
    SacGroup random;
    OpId last = kNoOp;
    for (const OpId id : unit.ops) {
      all_ += bytes_of_results(id);
      if (in_place_.contains(id)) continue;
      last = id;
      if (draws_random_numbers(t_.ops[id], t_))
        add(id, random);
      else
        add(id, groups_.emplace_back());
    }
    if (!random.ops.empty()) groups_.push_back(std::move(random));
    if (last == kNoOp) return;
    for (SacGroup& group : groups_)
      if (std::ranges::binary_search(group.ops, last)) group.bytes -= bytes_of_results(last);
    all_ -= bytes_of_results(last);
  }

  std::vector<OpId> kept(double share, bool greedy) const {
    const double most = std::ceil(share * static_cast<double>(all_));
    const std::vector<bool> taken = greedy ? without_the_best_savings(most) : most_time(most);
    std::vector<OpId> ops;
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (taken[i]) ops.insert(ops.end(), groups_[i].ops.begin(), groups_[i].ops.end());
    std::ranges::sort(ops);
    return ops;
  }

 private:
  Bytes bytes_of_results(OpId id) const {
    Bytes bytes = 0;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write) bytes += p_.held(use.storage);
    return bytes;
  }

  void add(OpId id, SacGroup& group) const {
    group.ops.push_back(id);
    group.bytes += bytes_of_results(id);
    group.time += t_.ops[id].duration;
  }

  // What writes on top of something, and what made that.
  void find_in_place(const RecomputeUnit& unit) {
    std::set<StorageId> changed;
    for (const OpId id : unit.ops)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::write && (use.version > 1 || t_.storages[use.storage].preexisting))
          changed.insert(use.storage);
    for (const OpId id : unit.ops)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::write && changed.contains(use.storage)) in_place_.insert(id);
  }

  std::vector<bool> most_time(double most) const {
    if (!choices_) {
      std::vector<KnapsackItem> items;
      for (const SacGroup& group : groups_) items.push_back({static_cast<double>(group.bytes), to_seconds(group.time)});
      choices_.emplace(items, static_cast<double>(all_));
    }
    return choices_->best(most);
  }

  std::vector<bool> without_the_best_savings(double most) const {
    std::vector<std::size_t> order(groups_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto savings = [&](std::size_t i) {
      return static_cast<double>(groups_[i].bytes) / std::max(1e-15, to_seconds(groups_[i].time));
    };
    std::ranges::stable_sort(order, std::ranges::greater{}, savings);
    Bytes left = 0;
    for (const SacGroup& group : groups_) left += group.bytes;
    std::vector<bool> taken(groups_.size(), true);
    for (const std::size_t i : order) {
      if (static_cast<double>(left) <= most) break;
      left -= groups_[i].bytes;
      taken[i] = false;
    }
    return taken;
  }

  const StepProfile& p_;
  const Trace& t_;
  std::vector<SacGroup> groups_;
  mutable std::optional<ChoicesByWeight> choices_;  // of the groups; made when they are first asked for
  std::set<OpId> in_place_;
  Bytes all_ = 0;
};

struct SacSettings {
  bool greedy = false;
  double share = -1;  // below 0: searched
  std::vector<std::string> modules;
};

// By a unit's first op.
using SacUnits = std::map<OpId, SacUnit>;

MemoryPlan sac_plan(const StepProfile& profile, const SacSettings& settings, double share, SacUnits& units) {
  UnitReruns reruns;
  reruns.units.policy = "torch_sac";
  reruns.units.mode = settings.modules.empty() ? "full" : "modules";
  reruns.units.patterns = settings.modules;
  reruns.kept_ops = [&](const RecomputeUnit& unit) {
    const OpId first = unit.ops.empty() ? kNoOp : unit.ops.front();
    return units.try_emplace(first, profile, unit).first->second.kept(share, settings.greedy);
  };
  return plan_of_unit_reruns(profile, reruns);
}

Planner sac_planner(const PolicyArguments& arguments) {
  SacSettings settings;
  settings.greedy = arguments.choice("solver") == "greedy";
  if (arguments.is_set("memory_budget")) settings.share = arguments.number("memory_budget");
  if (arguments.is_set("modules")) settings.modules = arguments.list("modules");
  std::string name = settings.greedy ? "torch_sac:greedy" : "torch_sac:milp";
  for (const std::string& module : settings.modules) name += "+" + module;
  return [settings, name](const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&) {
    SacUnits units;
    if (settings.share >= 0) return sac_plan(profile, settings, settings.share, units);
    return plan_of_largest_share(profile, budget, name,
                                 [&](double share) { return sac_plan(profile, settings, share, units); });
  };
}

// Why a plan may take more memory than the step without it.
std::string longer_lives(const StepProfile& profile, const MemoryPlan& plan) {
  Bytes bytes = 0;
  for (const PlannedKeep& keep : plan.keeps) bytes += profile.trace().storages[keep.storage].bytes;
  std::string text = rerun_units(profile, plan);
  if (bytes == 0) return text;
  return text + (text.empty() ? "" : " ") + human_bytes(bytes) +
         " live longer than the program asks for: results that are kept although autograd does not need them, and what "
         "re-runs start from.";
}

const RegisterPlanner registered_torch_sac{
    {.name = "torch_sac",
     .sentence = "keeps in each block what takes longest to compute again, by a knapsack (PyTorch's SAC estimator)",
     .heeds_budget_with = [](const PolicyArguments& arguments) { return !arguments.is_set("memory_budget"); },
     .parameters = {number("memory_budget", Unset{"auto"}, {0, 1}, "",
                           "share of the bytes of a block's results that are kept. auto: the largest of 1, 0.95, 0.9, "
                           "... that keeps to the budget. Where it is given, the budget says nothing."),
                    choice("solver", "milp", {"milp", "greedy"},
                           "milp: the best choice, by a knapsack; greedy: what saves most bytes per second runs again, "
                           "until the rest fits."),
                    patterns("modules", Unset{"blocks"},
                             "module paths, each a block of its own; '*' stands for any letters: layers.*.mlp")},
     .make = sac_planner,
     .remark = longer_lives}};

}  // namespace
}  // namespace memwall
