// Keeps a share of what a minimum cut keeps, and of the rest what takes longest to compute for its bytes.
//
// torch.compile's activation_memory_budget (torch._functorch.config; choose_saved_values_set in
// torch/_functorch/partitioners.py at pytorch 8ea3ef61a26d and the solvers in
// torch/_functorch/_activation_checkpointing/knapsack.py at 02d92aac88d1, of 2025; read, not copied):
//   1    the cut of the policy `mincut`.
//   0    nothing is kept but what cannot be made again.
//   m    the cut without bans of merging, then the cut of mincut:aggressive=1, where either keeps less than m of what
//        the first one keeps; else of the ops that these ban (matrix products, convolutions, attention, random ops,
//        reductions) a knapsack says whose results are kept, of m times those bytes at the most and the most costly to
//        run again; all others may run again, and the cut is made once more. What is kept may therefore be more than m
//        or less, as in PyTorch.
// Cost: FLOPs, at least 1, as PyTorch counts by default, or (runtime=profile) the time that the trace says.
//
// Left out: solver=ilp (refused; dp is exact up to its rounding), the experimental solvers, what `mincut` leaves out.
// Deviations: bytes are those of storages, without parameters and inputs, which live anyway; sums are in double
// precision; items of one size stand in the order of the host. Where no memory_budget is given, it is searched for the
// budget, in the steps of PyTorch's own sweep (0.05).
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "policies/planners/knapsack.h"
#include "policies/planners/minimum_cut.h"
#include "policies/planners/planner.h"
#include "policies/planners/saved_values.h"
#include "policies/planners/share_search.h"
#include "policies/trace/passes_in_turn.h"
#include "sim/error.h"

namespace memwall {
namespace {

struct BudgetSettings {
  bool greedy = false;
  bool by_time = false;
};

Bytes bytes_kept_of(const ForwardGraph& graph, std::size_t op) {
  Bytes bytes = 0;
  for (const std::size_t v : graph.ops[op].makes) bytes += graph.values[v].bytes;
  return bytes;
}

// By op: does backward need it?
std::vector<bool> needed_ops(const ForwardGraph& graph) {
  std::vector<bool> needed(graph.ops.size(), false);
  for (std::size_t op = graph.ops.size(); op-- > 0;)
    for (const std::size_t v : graph.ops[op].makes)
      needed[op] = needed[op] || !graph.values[v].backward.empty() ||
                   std::ranges::any_of(graph.values[v].readers, [&](std::size_t reader) { return needed[reader]; });
  return needed;
}

// What is banned although it could run again, the largest first.
std::vector<std::size_t> candidates(const ForwardGraph& graph, const ValueCut& cut) {
  const std::vector<bool> needed = needed_ops(graph);
  std::vector<std::size_t> ops;
  for (std::size_t op = 0; op < graph.ops.size(); ++op)
    if (cut.banned[op] && graph.ops[op].is_repeatable && needed[op]) ops.push_back(op);
  std::ranges::stable_sort(ops, std::ranges::greater{}, [&](std::size_t op) { return bytes_kept_of(graph, op); });
  return ops;
}

// `whole`: the bytes that are a share of 1.
std::vector<bool> allowed_ops(const StepProfile& p, const ForwardGraph& graph, const std::vector<std::size_t>& ops,
                              double share, double whole, const BudgetSettings& settings) {
  std::vector<KnapsackItem> items;
  for (const std::size_t op : ops) {
    const Op& run = p.trace().ops[graph.ops[op].id];
    items.push_back({static_cast<double>(bytes_kept_of(graph, op)) / whole,
                     settings.by_time ? to_seconds(run.duration) : std::max(1.0, run.flops)});
  }
  const std::vector<bool> kept = settings.greedy ? greedy_knapsack(items, share) : rounded_knapsack(items, share);
  std::vector<bool> allowed(graph.ops.size(), false);
  for (std::size_t i = 0; i < ops.size(); ++i) allowed[ops[i]] = !kept[i];
  return allowed;
}

// The cuts of one forward, for any share.
class SharedCuts {
 public:
  // `profile` has to outlive it.
  SharedCuts(const StepProfile& profile, ForwardGraph graph) : p_(profile), graph_(std::move(graph)) {}

  const ForwardGraph& graph() const { return graph_; }

  ValueCut of(double share, const BudgetSettings& settings) {
    if (share == 0) return least_cut(p_, graph_);
    const Cut& fastest = made(fastest_, {});
    const auto whole = static_cast<double>(fastest.bytes);
    if (share == 1 || fastest.bytes == 0) return fastest.cut;
    BanRules rules;
    rules.used_far_apart = rules.long_chains = rules.materialized_backward = false;
    const Cut& unmerged = made(unmerged_, rules);
    if (static_cast<double>(unmerged.bytes) / whole < share) return unmerged.cut;
    rules.not_on_list = false;
    const Cut& any = made(any_, rules);
    if (static_cast<double>(any.bytes) / whole < share) return any.cut;
    const std::vector<std::size_t> ops = candidates(graph_, any.cut);
    if (ops.empty()) return least_cut(p_, graph_);
    return minimum_cut(p_, graph_, rules, allowed_ops(p_, graph_, ops, share, whole, settings));
  }

 private:
  struct Cut {
    ValueCut cut;
    Bytes bytes = 0;  // that it keeps
  };

  const Cut& made(std::optional<Cut>& cut, const BanRules& rules) {
    if (!cut) {
      cut = Cut{minimum_cut(p_, graph_, rules)};
      cut->bytes = saved_bytes(graph_, cut->cut);
    }
    return *cut;
  }

  const StepProfile& p_;
  ForwardGraph graph_;
  std::optional<Cut> fastest_, unmerged_, any_;
};

std::vector<SharedCuts> cuts_of(const StepProfile& p) {
  std::vector<SharedCuts> all;
  for (const Pass& pass : passes_in_turn(p.trace())) all.emplace_back(p, forward_graph(p, pass));
  return all;
}

MemoryPlan plan_for(const StepProfile& p, std::vector<SharedCuts>& cuts, double share, const BudgetSettings& settings) {
  MemoryPlan plan;
  for (SharedCuts& one : cuts) keep_saved_values(p, one.graph(), one.of(share, settings), plan);
  return plan;
}

Planner planner_of_share(const PolicyArguments& arguments) {
  if (arguments.choice("solver") == "ilp")
    throw UsageError(
        "Policy 'torch_budget': solver=ilp is not implemented; solver=dp finds the same choice, to within 1/10,000 of "
        "the bytes.");
  const BudgetSettings settings{arguments.choice("solver") == "greedy", arguments.choice("runtime") == "profile"};
  const double share = arguments.is_set("memory_budget") ? arguments.number("memory_budget") : -1;
  const std::string name = "torch_budget:" + arguments.choice("solver") + "," + arguments.choice("runtime");
  return [settings, share, name](const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&) {
    std::vector<SharedCuts> cuts;  // made when a share is asked for that no other budget has asked for
    const auto plan_of = [&](double s) {
      if (cuts.empty()) cuts = cuts_of(profile);
      return plan_for(profile, cuts, s, settings);
    };
    return share >= 0 ? plan_of(share) : plan_of_largest_share(profile, budget, name, plan_of);
  };
}

const RegisterPlanner registered_torch_budget{
    {.name = "torch_budget",
     .sentence = "keeps a share of what mincut keeps, by a knapsack (torch.compile's activation_memory_budget)",
     .heeds_budget_with = [](const PolicyArguments& arguments) { return !arguments.is_set("memory_budget"); },
     .parameters = {number("memory_budget", Unset{"auto"}, {0, 1}, "",
                           "of the bytes that mincut keeps for backward; 1: all of them; 0: none. auto: the largest of "
                           "1, 0.95, 0.9, ... that keeps to the budget. Where it is given, the budget says nothing."),
                    choice("solver", "dp", {"dp", "greedy", "ilp"},
                           "dp: the best choice of what is kept; greedy: by cost per byte; ilp: not implemented."),
                    choice("runtime", "flops", {"flops", "profile"},
                           "what it costs to run an op again: its FLOPs, or its time in the step.")},
     .make = planner_of_share,
     .remark = unmerged_reruns}};

}  // namespace
}  // namespace memwall
