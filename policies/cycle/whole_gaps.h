// Which gaps of a cycle are spent away where it is over its budget, as a choice that is made step by step, and what
// copies follow from it. Internal to policies/cycle.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "policies/cycle/copies_of_turn.h"
#include "policies/cycle/cycle_links.h"
#include "policies/cycle/step_cycle.h"

namespace memwall {

// What has to be away, and how long slots take.
struct MovingProblem {
  std::vector<Bytes> excess;    // by slot: bytes over the budget, without gaps that cost nothing
  std::vector<Bytes> bytes;     // by gap: that are away in it
  std::vector<double> seconds;  // by slot
  // What comes back at the end of a slot waits for all that is dropped there. Else it may take the memory of what ends
  // with that slot, while another storage still leaves.
  bool drops_come_first = true;
};

// Of plans of this cycle, as replay_cycle() has them: whole blocks, all of the slots' time, drops before fetches.
MovingProblem problem_of_plans(const StepCycle& cycle, Bytes budget);
// Of any plan: needed_bytes(), slots' work, drops and fetches in any order.
MovingProblem problem_of_bound(const StepCycle& cycle, Bytes budget);

// What all plans have to do at least, with fewer gaps and slots over the budget: the smaller gaps are away for nothing,
// and slots between the highest are not looked at. False: the larger gaps matter too little.
bool relax(const StepCycle& cycle, std::size_t most_gaps, std::size_t most_slots, MovingProblem& problem);

// Neither a copy out nor one back.
inline bool costs_nothing(const CycleGap& gap) { return !gap.needs_content || !gap.returns; }

// A gap that costs copies.
struct OpenGap {
  std::uint32_t gap = 0;  // of the cycle
  Bytes bytes = 0;
  double out = 0, in = 0;           // seconds of its copies
  std::vector<std::int32_t> slots;  // over the budget that it covers, in its count, ascending
};

// It is away from the first to the last of these places in OpenGap::slots, and there at the places in `kept`.
struct GapChoice {
  std::int8_t first = -1, last = -1;
  std::uint64_t kept = 0;

  bool is_away() const { return first >= 0; }
  bool is_away(std::size_t place) const;
  bool can_be_away(std::size_t place) const;  // too
  void leave(std::size_t place);
};
using GapChoices = std::vector<GapChoice>;  // by open gap

// Copies of a choice. Of a version that several gaps share there is one copy out, for the one that is away first behind
// its write.
struct CopiesOfChoice {
  TurnOfCopies turn;
  std::array<std::vector<std::uint32_t>, 2> gaps;  // open ones, by direction and copy
};

class WholeGaps {
 public:
  static constexpr std::size_t kMostSlots = 64;

  // Stops at more open gaps or slots over the budget than that. The cycle and the problem have to outlive it.
  // REQUIRES: one path.
  WholeGaps(const StepCycle& cycle, const CycleLinks& links, const MovingProblem& problem, std::size_t most_gaps,
            std::size_t most_slots);

  // Is there something to choose, and no more than was asked for?
  bool applies() const { return applies_; }
  const std::vector<OpenGap>& open() const { return open_; }
  const CycleGap& gap(std::size_t open) const { return cycle_.gaps()[open_[open].gap]; }
  // In the count of the gap: the first in which it is away, and the first in which its memory is taken again.
  std::int32_t dropped(const GapChoices& choices, std::size_t open) const;
  std::int32_t fetched(const GapChoices& choices, std::size_t open) const;
  std::size_t in_turn(std::int32_t slot) const;

  // Is the budget kept in all slots?
  enum class Covers { all, not_yet, cannot };
  // What has to be away, as without it the others are not enough, is. Adds what it took to `work`, as all below.
  Covers follow(GapChoices& choices, std::uint64_t& work) const;
  // Gaps, and their places, of which at least one is away in addition: those that could be where most is left over the
  // budget; the largest first.
  std::vector<std::pair<std::size_t, std::size_t>> candidates(const GapChoices& choices, std::uint64_t& work) const;
  // Where slots are over the budget still, with windows in which what is not chosen yet has to pass. Refers to this.
  CopiesOfChoice copies(const GapChoices& choices, std::uint64_t& work) const;

 private:
  struct Covering {
    std::uint32_t gap = 0, place = 0;
  };
  struct Left {
    Bytes needed = 0, possible = 0;  // bytes still over the budget; that could be away in addition
    std::size_t over = 0;
  };
  struct Passing {           // in a window of which one end is a peak
    std::int32_t event = 0;  // the other end of the shortest one
    double seconds = 0;      // of a copy that is chosen
    Bytes bytes = 0;         // that could be away at the peak
  };

  void add(std::uint32_t gap, const CycleLinks& links);
  void add_events();
  Left left_at(std::size_t over, const GapChoices& choices) const;
  std::int32_t event(std::int32_t slot, std::int32_t kind) const;
  std::int32_t turns_of(std::int32_t event) const;
  std::int32_t comes_back() const;  // the kind of event from which on a copy back may begin
  TurnCopy copy(std::int32_t release, std::int32_t deadline, double seconds) const;
  std::int32_t slots_to_leave(const GapChoices& choices, std::size_t open) const;
  bool leaves_by(const GapChoices& choices, const std::vector<std::uint32_t>& out, std::size_t open,
                 std::int32_t slot) const;
  void add_windows(const GapChoices& choices, const Left& left, bool out, std::vector<Passing>& passing,
                   CopiesOfChoice& copies) const;

  const StepCycle& cycle_;
  const MovingProblem& problem_;
  const std::int32_t turn_;
  bool applies_ = false;
  std::vector<std::int32_t> over_;  // slots over the budget
  std::vector<OpenGap> open_;
  std::vector<std::vector<Covering>> covering_;  // by slot over the budget
  std::uint64_t coverings_ = 0;
  double out_per_byte_, in_per_byte_;  // seconds at least
  std::int32_t events_ = 0;
  std::vector<std::int32_t> event_;  // by slot: its first; -1: nothing is released or due there
  std::vector<double> starts_;       // TurnOfCopies::starts
};

}  // namespace memwall
