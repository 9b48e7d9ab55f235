#include "policies/trace/phases.h"

#include <algorithm>

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
  std::vector<Pass> found;
  Pass pass{kNoOp, kNoOp, kNoOp};
  const auto close = [&](OpId end) {
    pass.end = end;
    if (pass.begin != kNoOp && pass.backward != kNoOp) found.push_back(pass);
  };
  bool forward_ended = false;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Phase phase = trace.ops[id].phase;
    if (phase == Phase::forward && (pass.begin == kNoOp || forward_ended)) {
      close(id);
      pass = {id, kNoOp, kNoOp};
      forward_ended = false;
    }
    if (phase == Phase::backward && pass.backward == kNoOp) pass.backward = id;
    if (phase == Phase::backward || phase == Phase::optimizer) forward_ended = true;
  }
  close(static_cast<OpId>(trace.ops.size()));
  return found;
}

std::int64_t passes_per_step(const Trace& trace) {
  const auto all = static_cast<std::int64_t>(passes(trace).size());
  const auto steps = static_cast<std::int64_t>(step_count(trace));
  return all > steps && all % steps == 0 ? all / steps : 1;
}

}  // namespace memwall
