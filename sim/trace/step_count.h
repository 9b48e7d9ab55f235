// How many steps a trace holds, and in which of them nothing is launched.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sim/trace/trace.h"

namespace memwall {

// 1 where it names none.
inline std::size_t step_count(const Trace& trace) { return std::max<std::size_t>(1, trace.steps.size()); }

// Does nothing run on a device that was launched in the step?
inline bool is_idle(const Trace& trace, const Step& step) {
  const auto first = trace.ops.begin() + step.first, last = trace.ops.begin() + step.last;
  return std::none_of(first, last, [](const Op& op) { return runs_on_device(op.kind) && !op.placed; });
}

// Leaves out the steps in which nothing is launched, where there are others: what a profiler begins and a program does
// not go through is no step. What it spans belongs to the step before it, so that each ends where the next begins; what
// stands in front of the first one of the others belongs to none. Returns how many.
inline std::size_t leave_out_idle_steps(Trace& trace) {
  std::vector<Step> steps;
  for (const Step& step : trace.steps) {
    if (!is_idle(trace, step))
      steps.push_back(step);
    else if (!steps.empty())
      steps.back().last = std::max(steps.back().last, step.last);
  }
  const std::size_t idle = trace.steps.size() - steps.size();
  if (steps.empty() || idle == 0) return 0;
  trace.steps = std::move(steps);
  return idle;
}

}  // namespace memwall
