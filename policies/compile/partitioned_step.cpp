#include "policies/compile/partitioned_step.h"

#include <utility>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_writer.h"
#include "policies/planners/minimum_cut.h"
#include "policies/planners/saved_values.h"
#include "policies/trace/passes_in_turn.h"
#include "policies/trace/trace_edit.h"

namespace memwall {

PartitionedStep with_partition(const Trace& trace, const Machine& machine, const Pricer& pricer,
                               const std::function<bool(const Op&)>& is_compiled) {
  PartitionedStep result;
  const StepProfile profile(trace, machine);
  MemoryPlan plan;
  for (const Pass& pass : passes_in_turn(trace)) {
    ForwardGraph graph = forward_graph(profile, pass);
    for (GraphOp& op : graph.ops) op.is_repeatable = op.is_repeatable && is_compiled(trace.ops[op.id]);
    keep_saved_values(profile, graph, minimum_cut(profile, graph, {}), plan);
  }
  for (const PlannedRerun& rerun : plan.reruns) result.rerun_ops += rerun.ops.size();
  if (result.rerun_ops == 0 || !check_plan(plan, trace, profile.flow()).empty()) return {trace, 0};
  TraceEdit edit(trace, machine.host);
  write_plan(plan, profile.flow(), pricer, edit);
  result.trace = std::move(edit).apply();
  return result;
}

}  // namespace memwall
