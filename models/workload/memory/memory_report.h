// Where the memory of a recording goes: the live set at the peak, fragmentation, holes, leaks, and what is held longer
// than it is used. Pure functions; every figure that `memwall memory` prints.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "models/workload/memory/allocations.h"
#include "models/workload/memory/recording_replay.h"

namespace memwall {

// A group of allocations that live at one instant.
struct LiveGroup {
  std::string name;  // a kind, a phase, or a source line
  Bytes requested = 0;
  std::uint64_t blocks = 0;
};

struct LiveSet {
  std::uint32_t event = 0;
  Bytes requested = 0;
  // by_phase: in which they were made; what is older than the recording and has no frames is a group of its own.
  std::vector<LiveGroup> by_kind, by_phase, by_line;  // largest first; by_line at most `limit`, the rest as one group
  std::vector<std::uint32_t> largest;                 // indices into AllocationTable::allocations, at most `limit`
};
// After `event`; Allocation::kBefore: before the first event.
LiveSet live_set_at(const MemoryRecording& recording, const AllocationTable& table, std::uint32_t event,
                    std::size_t limit = 15);

// The most that is requested at once where nothing of `kinds` lives: what is left when these go elsewhere.
Bytes highest_without(const AllocationTable& table, const std::vector<StorageKind>& kinds);

// At one instant, from segments and blocks.
struct Fragmentation {
  Bytes internal = 0;  // allocated - requested: rounding, and remainders too small to split off
  Bytes external = 0;  // reserved - active: cached, not in use
  // Of external: what empty_cache would return, segments that are wholly free and free pages of expandable ones.
  Bytes whole_segments = 0;
  Bytes in_split = 0;  // the rest of external: free blocks beside blocks in use, and those of private pools
  struct Hole {
    Address segment = 0, address = 0;
    Bytes size = 0;
    std::uint16_t stream = 0;
    bool small_pool = false;
  };
  std::vector<Hole> largest_holes;  // largest first, at most `limit`
};
// `settings`: for the page size of expandable segments. Unmapped ranges are not reserved and count nowhere.
Fragmentation fragmentation_of(const std::vector<SegmentState>& segments, std::size_t limit = 10,
                               const AllocatorSettings& settings = {});

// Allocations that a step makes and leaves behind, in every step but the first, by source line.
struct Leak {
  std::string line;
  Bytes per_step = 0;        // requested bytes that stay, mean over the steps
  std::uint64_t blocks = 0;  // that stay, of all steps
  std::uint32_t steps = 0;   // in which it was seen
  StorageKind kind = StorageKind::unknown;
};
struct LeakReport {
  std::vector<Leak> leaks;         // largest first
  std::vector<Bytes> at_step_end;  // requested bytes alive at the end of each step
  std::string why_not;             // "" = steps were there to compare; else a sentence
};
LeakReport find_leaks(const MemoryRecording& recording, const AllocationTable& table);

// UnusedBytes past the phase that needs it: a gradient during the next forward, an activation after backward, ...
struct LateFree {
  std::string rule;   // one sentence: what is held, and what would free it earlier
  Bytes at_peak = 0;  // requested bytes of such allocations that are held in vain at the peak
  Bytes most = 0;     // held in vain at once, at worst
  std::uint64_t blocks = 0;
};
// `peak_event`: as for live_set_at. Largest at the peak first.
std::vector<LateFree> find_late_frees(const AllocationTable& table, std::uint32_t peak_event);

}  // namespace memwall
