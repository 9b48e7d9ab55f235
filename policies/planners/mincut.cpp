// Keeps for backward what a minimum cut of forward's graph says, and computes the rest again.
//
// The partitioner of PyTorch's AOTAutograd, which torch.compile uses (min_cut_rematerialization_partition,
// torch/_functorch/partitioners.py at pytorch 8ea3ef61a26d, of 2025; read, not copied; parameters weigh nothing, as in
// later versions). A value is kept or made again so that the fewest bytes are kept, while a list of cheap operators
// (partitioner_operators.h) and four heuristics (minimum_cut.h) say which ops must not run again. aggressive=1 is its
// aggressive_recomputation: of these bans those of random ops, matrix products, convolutions, attention and reductions
// remain.
//
// Left out: common subexpressions, decompositions of operators (a whole layer_norm is one op here), views, symbolic
// sizes, user annotations, fusion into triton kernels and `auto_functionalized` ops, and the compiler itself: kernels
// are those of the trace, and what it would merge into one costs a kernel each. Deviations: what lives anyway
// (parameters, inputs of the step) is free to keep, inputs too; what writes to it is never run again; distances and
// chains count ops that compute, without views; what backward gives back and a later re-run needs is made once more.
#include "policies/planners/minimum_cut.h"
#include "policies/planners/planner.h"
#include "policies/planners/saved_values.h"
#include "policies/trace/passes_in_turn.h"

namespace memwall {
namespace {

MemoryPlan mincut_plan(const StepProfile& profile, const BanRules& rules) {
  MemoryPlan plan;
  for (const Pass& pass : passes_in_turn(profile.trace())) {
    const ForwardGraph graph = forward_graph(profile, pass);
    keep_saved_values(profile, graph, minimum_cut(profile, graph, rules), plan);
  }
  return plan;
}

const RegisterPlanner registered_mincut{
    {.name = "mincut",
     .sentence = "keeps what a minimum cut of forward says, and computes the rest again (torch.compile's partitioner)",
     .heeds_budget = false,
     .parameters = {flag("aggressive", false,
                         "1: all but random ops, matrix products, convolutions, attention and reductions may run "
                         "again; 0: what PyTorch's partitioner lists as cheap and merges with its neighbours.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       BanRules rules;
       if (arguments.flag("aggressive"))
         rules.not_on_list = rules.materialized_backward = rules.used_far_apart = rules.long_chains = false;
       return [rules](const StepProfile& profile, const Budget&, const Machine&, const Pricer&) {
         return mincut_plan(profile, rules);
       };
     },
     .remark = unmerged_reruns}};

}  // namespace
}  // namespace memwall
