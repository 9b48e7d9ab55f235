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

ValueCut cut_for(const StepProfile& p, const ForwardGraph& graph, double share, const BudgetSettings& settings) {
  if (share == 0) return least_cut(p, graph);
  ValueCut fastest = minimum_cut(p, graph, {});
  const auto whole = static_cast<double>(saved_bytes(graph, fastest));
  if (share == 1 || whole == 0) return fastest;
  const auto keeps_less = [&](const ValueCut& cut) {
    return static_cast<double>(saved_bytes(graph, cut)) / whole < share;
  };
  BanRules rules;
  rules.used_far_apart = rules.long_chains = rules.materialized_backward = false;
  ValueCut cut = minimum_cut(p, graph, rules);
  if (keeps_less(cut)) return cut;
  rules.not_on_list = false;
  cut = minimum_cut(p, graph, rules);
  if (keeps_less(cut)) return cut;
  const std::vector<std::size_t> ops = candidates(graph, cut);
  if (ops.empty()) return least_cut(p, graph);
  return minimum_cut(p, graph, rules, allowed_ops(p, graph, ops, share, whole, settings));
}

MemoryPlan plan_for(const StepProfile& p, const std::vector<ForwardGraph>& graphs, double share,
                    const BudgetSettings& settings) {
  MemoryPlan plan;
  for (const ForwardGraph& graph : graphs) keep_saved_values(p, graph, cut_for(p, graph, share, settings), plan);
  return plan;
}

Planner planner_of_share(const PolicyArguments& arguments) {
  if (arguments.choice("solver") == "ilp")
    throw UsageError(
        "Policy 'torch_budget': solver=ilp is not implemented; solver=dp finds the same choice, to within 1/10,000 of "
        "the bytes.");
  const BudgetSettings settings{arguments.choice("solver") == "greedy", arguments.choice("runtime") == "profile"};
  const double share = arguments.is_set("memory_budget") ? arguments.number("memory_budget") : -1;
  return [settings, share](const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&) {
    std::vector<ForwardGraph> graphs;
    for (const Pass& pass : passes_in_turn(profile.trace())) graphs.push_back(forward_graph(profile, pass));
    if (share >= 0) return plan_for(profile, graphs, share, settings);
    return plan_of_largest_share(profile, budget, [&](double s) { return plan_for(profile, graphs, s, settings); });
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
