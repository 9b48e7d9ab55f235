#include "study/fusion_effect.h"

#include <algorithm>
#include <vector>

#include "sim/error.h"
#include "sim/policy/registry.h"
#include "study/study.h"

namespace memwall {
namespace {

StepTotals totals_of(const Run& run) {
  const Trace& trace = run.trace;
  StepTotals totals;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::kernel && op.kind != OpKind::memset) continue;
    totals.kernels += op.kernels;
    totals.bytes += op.bytes;
    totals.kernel_time += op.duration;
  }
  const SimulationResult& result = run.result;
  totals.step_time = result.steps.empty() ? result.end : result.steps.front().step_time;
  if (!result.tiers.empty()) totals.peak = result.tiers.front().peak_allocated;
  return totals;
}

std::vector<bool> allocated(const Trace& trace) {
  std::vector<bool> found(trace.storages.size(), false);
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::alloc) found[op.target] = true;
  return found;
}

// `compiled`: only what a compiler has made, as merged ops are.
std::uint64_t work_ops(const Trace& trace, bool compiled) {
  return static_cast<std::uint64_t>(std::count_if(trace.ops.begin(), trace.ops.end(), [&](const Op& op) {
    return op.kind == OpKind::kernel && (!compiled || op.dispatch == Dispatch::compiled);
  }));
}

}  // namespace

FusionEffect fusion_effect(const SharedTrace& trace, const Machine& machine, const std::string& policy) {
  FusionEffect effect;
  const PolicySpec spec = parse_policy(policy);
  if (spec.info->kind != PolicyKind::fusion)
    throw UsageError("--fusion " + policy + ": \"" + spec.info->name + "\" is another policy; expected " +
                     policy_of(PolicyKind::fusion).name + ", with settings or without; others go to --policy.");
  spec.info->make_rewriter(spec.arguments);  // wrong settings are the user's mistake, not the trace's
  Study study;
  study.add_step(trace->name, trace);
  study.add_machine(machine.name, machine);
  Scenario scenario{.step = {trace->name}, .machine = machine.name};
  constexpr RunOptions options{.record = false};
  effect.before = totals_of(study.run(scenario, options).run);
  scenario.policies = {policy};
  Run run;
  try {
    run = study.run(scenario, options).run;
  } catch (const UsageError& error) {
    effect.before = {};
    effect.refusal = error.what();
    return effect;
  }
  const Trace& fused = run.trace;
  effect.after = totals_of(run);
  effect.merged_into = work_ops(fused, true) - work_ops(trace, true);
  effect.merged_ops = work_ops(trace, false) - work_ops(fused, false) + effect.merged_into;
  const std::vector<bool> had = allocated(trace), has = allocated(fused);
  for (std::size_t s = 0; s < had.size(); ++s) {
    if (!had[s] || has[s]) continue;
    ++effect.vanished;
    effect.vanished_bytes += trace->storages[s].bytes;
  }
  return effect;
}

}  // namespace memwall
