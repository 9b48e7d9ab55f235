// The fastest turn of a cycle within a budget as a linear program with whole numbers: a proved bound from below of what
// any plan of whole-storage moves over one path takes, sharper than that of policies/cycle, of which it knows only the
// description of cycles. By CBC, or by Clp where gaps may be away in part.
//
// A turn has two waits before each slot: for copies out of what is dropped there, then for copies back of what is
// touched there. Each gap is away or not; when its memory is given up and taken again may be in part, copies flow and
// may be cut, but no faster than the link, not before their content and their memory are there, and as many bytes as
// their latency is long in addition.
#pragma once

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/step_cycle.h"
#include "policies/solver/linear_program.h"

namespace memwall {

struct MovesProgramAnswer {
  SolverStatus status = SolverStatus::unknown;
  double seconds = 0;           // proved: no turn is shorter
  double found_seconds = 0;     // of the best values that were found; not always a plan
  std::vector<bool> away{};     // by gap, in these
  std::vector<double> waits{};  // by slot, in these: seconds before it
};

enum class MovesWhole : std::uint8_t { nothing, gaps, slots };

// REQUIRES: one path; LinearProgram::is_available().
MovesProgramAnswer solve_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget, MovesWhole whole,
                               const SolverLimits& limits = {});

}  // namespace memwall
