// A lower bound on the time of a turn within a budget of device memory, in closed form, without a solver.
//
// Where more than the budget lives in slot p, the excess has to be away by then. Of it, what was written since slot u
// can only have left between u and p, and what is used by slot v has to be back between p and v: where the link takes
// longer than the slots between, the device waits for the difference. Waiting times of windows that do not overlap add
// up. Valid for any plan that moves storages or parts of them, in any order and over any number of streams, in the
// steady state of turns that repeat: it counts bytes, not storages; flows, not queues; and no latency.
// Where copies pass through buffers on their way, these may be ahead of the link behind them by TransferStyle::staging
// of the largest storages. With re-runs a byte of the excess costs what is less: the link's time or the cheapest op
// that makes it again. One re-run may serve several windows, so that the largest of them counts and not their sum.
// While it runs, the link goes on: of y bytes of a window that are made again in it at a price of t, the device's time
// grows by y t, the link carries y t times its rate more, and y need not pass. Out of a window that begins and ends in
// one turn this takes place behind it. What is away at a peak is made again behind it: where what its op reads is
// overwritten by then, it cannot be. Source of the argument: the project's own (docs/planner.md derives it).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/step_cycle.h"

namespace memwall {

// The device waits between the end of slot `from` and the start of slot `to`, for bytes that leave (out) or come back.
struct BindingWindow {
  std::int64_t from = 0, to = 0;
  bool out = true;
  std::uint32_t peak = 0;  // the slot whose excess it is
  Bytes deficit = 0;       // of the excess that can pass the link in the window alone
  double wait_seconds = 0;
};

struct MovesBound {
  bool feasible = true;      // false: one slot alone touches more than the budget
  Bytes least_budget = 0;    // that is feasible
  std::uint32_t worst = 0;   // the slot with the largest excess
  Bytes excess = 0;          // there; <= 0: all fits
  double seconds = 0;        // the bound on a turn
  double ideal_seconds = 0;  // with unlimited memory
  // Derivatives of `seconds`: by the budget's bytes, and by the rates out and in. At most 0. They hold while the same
  // windows bind.
  double per_byte = 0, per_out_rate = 0, per_in_rate = 0;
  std::vector<BindingWindow> windows;  // disjoint; ascending; their waits are seconds - the device's work
};

// What follows from the cycle and the budget alone, at once: `seconds` is ideal_seconds.
MovesBound bound_without_links(const StepCycle& cycle, Bytes budget);

// Slots at which the excess is looked at, at most: the highest of each part of the turn. Fewer take less time and
// weaken the bound; it holds in spite of that.
constexpr std::size_t kPeaksOfBound = 256;

MovesBound moves_bound(const StepCycle& cycle, const CycleLinks& links, Bytes budget,
                       std::size_t peaks = kPeaksOfBound);

// What making the content of a gap again takes at least; seconds of device time per byte, infinite = cannot be.
struct RerunPrice {
  static constexpr std::int32_t kAlways = std::numeric_limits<std::int32_t>::max();

  RerunPrice(double seconds, std::int32_t possible_until = kAlways)
      : seconds_per_byte(seconds), with_inputs(seconds), until(possible_until) {}

  double seconds_per_byte;  // of the op that makes it alone
  // Of what that reads and is gone from slot `lost_from` on, too: no less than seconds_per_byte. It holds where what is
  // made again and what is read have to pass the link in the same window: of copies out one that begins in
  // `inputs_from` or earlier.
  double with_inputs;
  std::int32_t inputs_from = 0, lost_from = 0;
  std::int32_t until;  // away in this slot of the turn or a later one it is not made again: what it starts from is gone
};
using RerunPrices = std::vector<RerunPrice>;

// Of plans that also compute again.
struct JointBound {
  double seconds = 0;  // the bound on a turn
  // Derivatives of `seconds`, as those of MovesBound: of the window that costs most, where a byte more or less is carried
  // or made again at the same price. `per_rate`: of both rates together, which is less than the sum of both where only
  // the faster one counts.
  double per_byte = 0, per_out_rate = 0, per_in_rate = 0, per_rate = 0;
};

// By gap of the cycle. REQUIRES: as many prices as gaps.
JointBound joint_bound(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const RerunPrices& prices);
double joint_bound_seconds(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const RerunPrices& prices);
// Of plans that compute again and move nothing: the joint bound with links that carry a byte in a second. What cannot
// be made again makes it longer than any step.
double reruns_bound_seconds(const StepCycle& cycle, Bytes budget, const RerunPrices& prices);

}  // namespace memwall
