// What leaves device memory in a run because a policy or a memory plan decided so, and what brings it back: copies to
// other tiers and from them, ops that are run again. Told by the run alone, whoever decided it: copies that were put in
// (Op::added) and ops of Phase::recompute that name what they repeat.
//
// A storage that comes back is another storage of the trace; here it goes by the one that the program made. What a
// pager moves is in SimulationResult::moves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

// A copy takes content out of device memory.
struct StorageDeparture {
  StorageId storage = kNoStorage;
  OpId copy = kNoOp;
};

// Content is in device memory again, and used there.
struct StorageReturn {
  StorageId storage = kNoStorage, replica = kNoStorage;  // as the program made it; what stands for it from here on
  OpId by = kNoOp;                                       // the copy, or the op that is run again
  bool is_rerun = false;
  OpId use = kNoOp;   // the first op on the device that uses it; kNoOp: none does
  Duration slack{};   // of a copy: from its end to the start of that use; 0 where that waited for it
  bool late = false;  // the use began when it did because of the copy
};

// Of all storages that a module makes.
struct ModuleDecisions {
  std::string module;  // "" = of none, or unknown
  std::uint64_t storages = 0;
  Bytes copied_out = 0, copied_in = 0;
  Bytes made_again = 0;                 // of storages that a re-run brings back
  std::uint64_t fetches = 0, late = 0;  // copies back that are used; of them those that their use waited for
  std::optional<Duration> slack;        // the smallest of these
  std::uint64_t rerun_ops = 0;          // on the device, of the module's ops
  Duration rerun_time{};                // of these, one after the other

  Bytes moved() const { return copied_out + copied_in + made_again; }
};

struct MemoryDecisions {
  std::vector<StorageDeparture> departures;  // in the order of the host
  std::vector<StorageReturn> returns;        // likewise; of re-runs what is used by others
  std::vector<OpId> reruns;                  // ops on the device that are run again, likewise
  std::vector<ModuleDecisions> modules;      // by bytes moved, largest first, then by time run again, then by name

  bool empty() const { return modules.empty(); }
  ModuleDecisions total() const;  // of all modules, without a name
};

MemoryDecisions memory_decisions(const Run& run);

}  // namespace memwall
