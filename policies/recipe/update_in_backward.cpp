#include "policies/recipe/update_in_backward.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "policies/recipe/accumulated_gradients.h"
#include "policies/trace/described.h"
#include "sim/error.h"
#include "sim/trace/step_count.h"

namespace memwall {
namespace {

// The pass that the update ends.
Pass pass_of(const Trace& trace, const OptimizerStep& step, const std::string& policy) {
  const std::vector<Pass> all = passes(trace);
  for (const Pass& pass : all)
    if (all.size() == step_count(trace) && step.ops.front() > pass.backward && step.ops.front() < pass.end) return pass;
  throw UsageError(
      fmt::format("Policy '{}' has no meaning for trace '{}': updates in backward need one pass in each step, "
                  "and it has {} in {}.",
                  policy, trace.name, all.size(), step_count(trace)));
}

// What else than the update needs a gradient once backward is over, if anything does.
OpId other_reader(const Trace& trace, const Dataflow& flow, const OptimizerStep& step, StorageId gradient) {
  for (const Touch& touch : flow.touches(gradient))
    if (trace.ops[touch.op].phase == Phase::optimizer && !std::ranges::binary_search(step.ops, touch.op))
      return touch.op;
  return kNoOp;
}

// Of a copy, what was copied goes first.
OpId complete_behind(const Trace& trace, const AccumulatedGradient& g) {
  if (g.copied_from == kNoStorage) return g.node_end;
  const OpId next = g.last_writer + 1;
  const bool freed = next < trace.ops.size() && trace.ops[next].kind == OpKind::free;
  return freed && trace.ops[next].target == g.copied_from ? next : g.last_writer;
}

}  // namespace

std::vector<EarlyUpdate> updates_in_backward(const Trace& trace, const Dataflow& flow, const OptimizerStep& step,
                                             const std::vector<UpdatedParameter>& parameters,
                                             const std::string& policy) {
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("Policy '{}' has no meaning for trace '{}': {}", policy, trace.name, why));
  };
  std::map<StorageId, std::size_t> numbers;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    numbers.emplace(parameters[i].gradient, i);
    if (const OpId other = other_reader(trace, flow, step, parameters[i].gradient); other != kNoOp)
      refuse(fmt::format("{} needs the gradients together, so that no parameter can be updated before.",
                         described_op(trace, other)));
  }
  std::vector<EarlyUpdate> updates;
  for (const AccumulatedGradient& g :
       accumulated_gradients(trace, flow, pass_of(trace, step, policy), step.ops.front()))
    if (const auto found = numbers.find(g.gradient); found != numbers.end())
      updates.push_back({found->second, complete_behind(trace, g), g.last_writer, flow.free(g.gradient)});
  if (updates.size() != parameters.size())
    refuse(fmt::format("of {} gradients {} are made in backward; the others live from step to step, or are not told.",
                       parameters.size(), updates.size()));
  return updates;
}

}  // namespace memwall
