// Changes to the settings of a plan of moves that may shorten its waits, drawn at random: same numbers drawn, same
// settings.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "policies/cycle/cycle_replay.h"
#include "policies/cycle/move_schedule.h"

namespace memwall {

// Times the share. What the next plan may take for granted of another one's waits.
std::vector<Duration> shortened(std::vector<Duration> waits, double share);

// A plan, what made it, and how it runs.
struct TriedMoves {
  MovePlan plan;
  MoveSettings settings;
  ReplayedCycle replayed;
};

class MoveRepair {
 public:
  // `base_weights`: by gap. The cycle has to outlive it.
  MoveRepair(const StepCycle& cycle, std::vector<double> base_weights);

  // Of one of the kinds below, with some of the waits of the plan or of `last_waits`: less time for the links makes the
  // next plan choose differently.
  MoveSettings next(const TriedMoves& best, const std::vector<Duration>& last_waits);

 private:
  MoveSettings exchanged(const TriedMoves& best, MoveSettings next);
  MoveSettings chosen_anew(const TriedMoves& best, MoveSettings next);
  void reweigh(const TriedMoves& best, MoveSettings& next);
  std::size_t drawn_slot(const TriedMoves& best);
  std::vector<std::uint32_t> queued_before(const TriedMoves& best, std::size_t slot);
  std::vector<std::size_t> moves_over(const TriedMoves& best, std::size_t slot) const;
  std::vector<std::uint32_t> unmoved_over(const TriedMoves& best, std::size_t slot) const;
  bool covers(std::int64_t begin, std::int64_t end, std::size_t slot) const;
  // Of `size` things in their order one of the first rather than of the last. REQUIRES: size > 0.
  std::size_t skewed(std::size_t size);

  const StepCycle& cycle_;
  const std::vector<double> base_weights_;
  std::mt19937_64 random_{20};
};

}  // namespace memwall
