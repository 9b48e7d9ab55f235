#include "models/workload/memory/phase_intervals.h"

#include <algorithm>
#include <cassert>

namespace memwall {
namespace {

Phase pass_of(Phase phase) { return phase == Phase::recompute ? Phase::backward : phase; }

// Extends the last run, or begins one.
void extend(std::vector<PhaseInterval>& runs, Phase phase, std::uint32_t event, bool divided) {
  if (runs.empty() || runs.back().phase != phase || divided) runs.push_back({phase, event, event});
  runs.back().end = event + 1;
}

std::uint32_t last_begun(const std::vector<PhaseInterval>& runs, std::uint32_t event) {
  const auto after = std::upper_bound(runs.begin(), runs.end(), event,
                                      [](std::uint32_t e, const PhaseInterval& run) { return e < run.begin; });
  return after == runs.begin() ? PhaseIntervals::kNone : static_cast<std::uint32_t>(after - runs.begin() - 1);
}

}  // namespace

PhaseIntervals::PhaseIntervals(const std::vector<Phase>& phases) : next_known_(phases.size(), kNone) {
  const bool backward =
      std::any_of(phases.begin(), phases.end(), [](Phase p) { return pass_of(p) == Phase::backward; });
  bool gap = false, recompute_gap = false;
  for (std::uint32_t event = 0; event < phases.size(); ++event) {
    const Phase phase = phases[event];
    if (phase == Phase::unknown) {
      gap = true;
      continue;
    }
    extend(runs_, pass_of(phase), event, gap && !backward);
    if (phase == Phase::recompute) extend(recomputed_, phase, event, recompute_gap);
    recompute_gap = phase != Phase::recompute;
    gap = false;
  }
  for (std::uint32_t event = static_cast<std::uint32_t>(phases.size()), known = kNone; event-- > 0;)
    next_known_[event] = known = phases[event] == Phase::unknown ? known : event;
  for (std::uint32_t run = 0; run < runs_.size(); ++run)
    (runs_[run].phase == Phase::forward    ? forward_
     : runs_[run].phase == Phase::backward ? backward_
                                           : optimizer_)
        .push_back(run);
}

std::uint32_t PhaseIntervals::at(std::uint32_t event) const { return last_begun(runs_, event); }

std::uint32_t PhaseIntervals::next(std::uint32_t event, Phase phase) const {
  const auto& numbers = phase == Phase::forward ? forward_ : phase == Phase::backward ? backward_ : optimizer_;
  const auto found = std::lower_bound(numbers.begin(), numbers.end(), event,
                                      [&](std::uint32_t run, std::uint32_t e) { return runs_[run].begin < e; });
  return found == numbers.end() ? kNone : *found;
}

std::uint32_t PhaseIntervals::recompute_end(std::uint32_t event) const {
  const std::uint32_t run = last_begun(recomputed_, event);
  assert(run != kNone);
  return recomputed_[run].end;
}

std::uint32_t PhaseIntervals::next_known(std::uint32_t event) const {
  return event < next_known_.size() ? next_known_[event] : kNone;
}

}  // namespace memwall
