// What a run writes to drives, how long they last at that, and when their write cache is full.
//
// Counted for one set of drives, those that the GPUs of one node share: what crosses the link behind which they are
// (Tier::write_link), folded ranks included, compressed where it crosses compressed. Where the trace holds ranks of
// several nodes, the set that is written most. A training that goes on day and night at this step time:
//   bytes per day = bytes of a step x 86400 s / step time
//   life in days = endurance of one drive x drives / bytes per day
//   drive writes per day = bytes per day / capacity of all drives
// Assumption: all drives are written alike, and wear by what the host writes, as data sheets rate it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

struct DriveWrites {
  double bytes = 0;    // of one step
  double per_day = 0;  // bytes; 0 for steps without duration
  double drive_writes_per_day = 0;
  std::optional<double> life_days{};  // nothing: endurance or drives are not stated
  // After so many steps from an empty cache on it is full, and writes are as slow as it is emptied; nothing: what steps
  // write does not fill it, or writes do not fall off.
  std::optional<std::uint64_t> full_after_steps{};
  Duration cache_full{};  // of one step: time in which that is so
  bool falls_off = false;
  bool operator==(const DriveWrites&) const = default;
};

// By tier of run.machine; nothing where nothing is written, and where writes cannot be told (Tier::write_link is -1).
std::vector<std::optional<DriveWrites>> drive_writes(const Run& run);

// Bytes by which a link's write cache is fuller after a step than before it, as long as it is neither full nor empty
// meanwhile: what is written less what the drives take from it in a step's time. REQUIRES: the link falls off.
double cache_growth(const Run& run, std::size_t link);

}  // namespace memwall
