// The phases of a recording in stretches: forward, backward, optimizer, forward, ...
//
// Recomputation belongs to the backward pass that asks for it. What lies between two stretches of one phase (the loss
// function's call, a print) does not divide them; only in a recording without a backward pass, where one forward pass
// follows another, it does. Internal to the memory study.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/trace/op.h"

namespace memwall {

struct PhaseInterval {
  Phase phase = Phase::unknown;
  std::uint32_t begin = 0, end = 0;  // events [begin, end): the first and the last are of this phase
};

class PhaseIntervals {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  explicit PhaseIntervals(const std::vector<Phase>& phases);

  const std::vector<PhaseInterval>& all() const { return runs_; }
  // Of the run that begins last at or before the event; kNone before the first.
  std::uint32_t at(std::uint32_t event) const;
  // The next run of `phase` that begins at or after the event, kNone if there is none.
  std::uint32_t next(std::uint32_t event, Phase phase) const;
  // The end of the stretch of recomputation that the event lies in. REQUIRES: the event's phase is recompute.
  std::uint32_t recompute_end(std::uint32_t event) const;
  // The first event at or after this one whose phase is known, kNone if there is none.
  std::uint32_t next_known(std::uint32_t event) const;

 private:
  std::vector<PhaseInterval> runs_, recomputed_;
  std::vector<std::uint32_t> next_known_;                      // by event
  std::vector<std::uint32_t> forward_, backward_, optimizer_;  // numbers of runs
};

}  // namespace memwall
