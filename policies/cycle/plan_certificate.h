// What can be said of every plan for a step within a budget, before one is made: the least time of a turn, what more
// memory and faster links would be worth, and what holds the peak.
#pragma once

#include <string>
#include <vector>

#include "policies/cycle/cycle_links.h"
#include "policies/profile/step_profile.h"

namespace memwall {

// Where most lives.
struct PeakInstant {
  OpId op = kNoOp;
  Time at{};        // from the start of the step, with unlimited memory
  Bytes bytes = 0;  // blocks that live there
};

// What would be away, and where the peak is then.
struct PeakLever {
  std::string name;  // "activations moved while they rest"
  PeakInstant peak;
};

struct PlanCertificate {
  double ideal_seconds = 0;   // with unlimited memory
  double moves_seconds = 0;   // no plan that only moves, and whole storages, is faster
  double joint_seconds = 0;   // no plan is faster that moves and computes again
  // Prices: by how much a turn of the bound becomes shorter with a little more of it, in seconds per GB of device
  // memory, per GB/s of all links out, in, and both ways (MovesBound, JointBound). At least 0. `moves_*` of plans that
  // only move: where whole storages bind (whole_moves.h), what a GB or a GB/s takes off.
  double moves_per_gigabyte = 0, joint_per_gigabyte = 0;
  double moves_per_out_rate = 0, moves_per_in_rate = 0;
  double joint_per_out_rate = 0, joint_per_in_rate = 0;
  double moves_per_rate = 0, joint_per_rate = 0;
  PeakInstant peak;           // without a plan
  Bytes budget = 0;
  Bytes least_budget = 0;     // below which one op alone touches more: no plan of whole storages keeps to less
  OpId least_at = kNoOp;      // that op
  std::vector<PeakLever> levers;
};

// REQUIRES: budget > 0. Throws UsageError as cycle_of_step.
PlanCertificate plan_certificate(const StepProfile& profile, Bytes budget, const CycleLinks& links);

// Of the certificate what plans that only move, or plans that compute again, too, take at least, and what a GB more of
// device memory takes off that: a part of the time, as most of that goes to prices of whole storages.
struct LeastTurn {
  double seconds = 0, per_gigabyte = 0;
};
LeastTurn least_turn(const StepProfile& profile, Bytes budget, const CycleLinks& links, bool recompute);

}  // namespace memwall
