// Where the clocks of two captures contradict each other: between collectives that are the same, by their order and
// their times from one to the next, the difference of the clocks changes.
//
// Clocks of one run differ by an offset and a steady drift (rank_clock.h). A clock that was set while the job ran
// jumps: before and behind the jump the collectives follow each other alike, and across it they do not. Where they
// nowhere follow each other alike, no clock explains it: the captures are of different runs.
#pragma once

#include <span>
#include <string>

#include "models/workload/import/ranks/collective_match.h"

namespace memwall {

struct ClockContradiction {
  std::uint64_t pairs = 0;   // of what ends together on all ranks
  std::uint64_t alike = 0;   // of them, those at whose end the interval before agrees; the first counts
  Duration least{}, most{};  // difference of the clocks at the ends: reference less own
  Duration jump{};           // the largest change of it from one pair to the next
  CollectiveKind kind{};     // of the pair behind it
  std::uint64_t number = 0;  // of that pair, from 1
  Time at{};                 // its end on the own clock
  Duration range() const { return most - least; }
  bool follow_alike() const { return pairs >= 3 && alike * 2 > pairs; }
};

// REQUIRES: pairs ascend in both sides.
ClockContradiction clock_contradiction(std::span<const MatchItem> reference, std::span<const MatchItem> own,
                                       std::span<const ItemPair> pairs);

// Why fewer than half of the collectives end together, as the end of a sentence: a clock that was set, by how much and
// where; or another run.
std::string reason_of_disagreement(const ClockContradiction& contradiction);

}  // namespace memwall
