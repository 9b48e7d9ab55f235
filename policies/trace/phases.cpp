#include "policies/trace/phases.h"

#include <algorithm>
#include <utility>

#include "sim/trace/step_count.h"

namespace memwall {
namespace {

RunKind run_kind(Phase phase) {
  if (phase == Phase::forward) return RunKind::forward;
  return phase == Phase::optimizer ? RunKind::optimizer : RunKind::backward;
}

}  // namespace

PhaseRuns::PhaseRuns(const Trace& trace) {
  bool known = false;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Phase phase = trace.ops[id].phase;
    if (runs_.empty()) runs_.push_back({RunKind::forward, 0, 0});
    if (phase != Phase::unknown) {
      const RunKind kind = run_kind(phase);
      if (known && kind != runs_.back().kind) runs_.push_back({kind, id, id});
      runs_.back().kind = kind;  // what stands before the first known phase belongs to it
      known = true;
    }
    runs_.back().last = id;
  }
}

std::uint32_t PhaseRuns::of(OpId op) const {
  const auto found =
      std::lower_bound(runs_.begin(), runs_.end(), op, [](const PhaseRun& run, OpId id) { return run.last < id; });
  return static_cast<std::uint32_t>(found - runs_.begin());
}

std::vector<Pass> passes(const Trace& trace) {
  const auto count = static_cast<OpId>(trace.ops.size());
  std::vector<Pass> found;
  Pass pass{kNoOp, kNoOp, kNoOp};
  OpId next = kNoOp;  // where forward has begun again
  std::size_t step = 0, next_step = 0, backward_step = 0;
  const auto close = [&](OpId end) {
    pass.end = end;
    if (pass.begin != kNoOp && pass.backward != kNoOp) found.push_back(pass);
  };
  bool forward_ended = false;
  for (OpId id = 0; id < count; ++id) {
    while (step + 1 < trace.steps.size() && id >= trace.steps[step + 1].first) ++step;
    switch (trace.ops[id].phase) {
      case Phase::forward:
        if (pass.begin == kNoOp)
          pass.begin = id;
        else if (forward_ended && next == kNoOp)
          next = id, next_step = step;
        break;
      case Phase::backward:
        if (next != kNoOp) {
          close(next);
          pass = {std::exchange(next, kNoOp), kNoOp, kNoOp};
        }
        if (pass.backward == kNoOp) pass.backward = id;
        backward_step = step;
        forward_ended = true;
        break;
      case Phase::optimizer:
        if (next_step == backward_step) next = kNoOp;  // no pass: it belongs to the update
        forward_ended = true;
        break;
      default:
        break;
    }
  }
  close(next == kNoOp ? count : next);
  return found;
}

std::int64_t passes_per_step(const Trace& trace) {
  const auto all = static_cast<std::int64_t>(passes(trace).size());
  const auto steps = static_cast<std::int64_t>(step_count(trace));
  return all > steps && all % steps == 0 ? all / steps : 1;
}

}  // namespace memwall
