// A run: one simulation with everything needed to look at it again without
// simulating: the trace as it was run, the machine, the result, and how memory
// and links behaved over time. Viewer, compare, export and summary read only this.
//
// A run owns all it holds. Times are picoseconds from the start of the simulation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/simulation.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/shared_trace.h"
#include "traces/run/contended_steps.h"

namespace memwall {

// A tier's memory from `time` on, until the next point.
struct MemoryPoint {
  Time time{};
  Bytes allocated = 0, requested = 0, reserved = 0;  // as sim/memory/allocator.h's Usage
};

// What flows over a link from `time` on, until the next point.
struct RatePoint {
  Time time{};
  double bytes_per_second = 0;
};

// A storage occupies a tier from `begin` to `end` (the end of the run if it is never given back).
struct Residency {
  StorageId storage = kNoStorage;
  std::uint16_t tier = 0;  // index into Machine::tiers
  Time begin{}, end{};
};

// A file the run was made from. Its name without folders, so that equal inputs give equal runs.
struct InputFile {
  std::string name;
  std::string hash;  // hexadecimal; says which function: "crc32:0a1b2c3d"
};

// Where and when the run was made: the only part of it that may differ between equal runs.
struct Provenance {
  double wall_seconds = 0;
  std::string host, date, command_line, version;
  std::string scenario{};  // as a line (study/scenario.h), files by their whole paths; "" = not known
};

// The mean step time with every duration of the device that has a known error short, and long; 0 = not simulated.
struct StepBounds {
  Duration low{}, high{};
};

// What the user changed besides policies, as given.
struct RunChanges {
  std::vector<std::string> overrides;  // of the machine's numbers: "gpu.hbm.bandwidth=4TB/s", "pcie=gen5"
  std::vector<std::string> scale;      // of durations: "kernels=1.1"
  bool transfer_host = false;          // host time too was taken to another machine
  Duration step_without{};             // mean step time without overrides and scale; 0 where there are none
};

// A change that was tried on a step that does not fit: simulated like the step itself, beside all that was asked for.
struct TriedChange {
  std::string options;            // as one types them: "--policy checkpoint:mode=full"
  bool fits = false;              // then times are what they are, else they take memory as unlimited
  Bytes peak_reserved = 0;        // of the GPU's memory, as the allocator obtains it
  std::string missing_in;         // the tier that lacks most; "" where it fits
  Bytes missing = 0;              // there
  Duration step_time{};           // mean over the steps
  double samples_per_second = 0;  // of all ranks; 0 = unknown
};

// The step once more, with one part of its work twice as fast. Simulated, policies' ops included.
struct Speedup {
  std::string what;      // "kernels", "host", "copies", "collectives"
  Duration step_time{};  // mean over the steps
};

struct Run {
  SharedTrace trace;    // after all rewriters: what was simulated
  RankMachine machine;  // resolved: overrides applied, written out for the ranks (sim/machine/rank_machine.h)
  std::vector<std::string> policies;  // rewriters as given, in the order of application
  std::string pager;                  // as given, "" = none
  std::string allocator = "pytorch";
  std::string allocator_settings;  // as to_string(AllocatorSettings); "" = default
  RunChanges changes;
  std::vector<std::string> warnings;  // sentences: which of them did nothing, and why
  std::vector<InputFile> inputs;
  SimulationResult result;
  StepBounds step_bounds;
  // Results per tier of the step before policies and without a pager, under the same allocator: what they did to
  // fragmentation. Empty where there were none.
  std::vector<TierResult> unchanged;
  Duration unchanged_step{};  // its mean step time; 0 where there were none
  // The mean step time once the drives' write caches hold as much at the end of the run as at its beginning
  // (study/steady_writes.h); 0 where no drive that falls off is written, or nobody asked.
  Duration steady_step{};
  // The mean step time if no other rank used what ranks of a host share (study/alone_step.h); 0 where there is one
  // rank, nothing to share, or nobody asked.
  Duration alone_step{};
  ContendedSteps contended_steps;  // what of the difference is whose; 0 where alone_step is
  // The longest first step of a rank, which page-locks the memory that later steps find in their pools
  // (study/first_step.h); 0 where steps page-lock nothing, or nobody asked.
  Duration first_step{};
  std::vector<TriedChange> tried;  // what may make it fit, best first (study/remedies.h); empty where it fits
  std::vector<Speedup> speedups;   // where it fits (study/speedups.h); empty where nobody asked
  std::vector<std::vector<MemoryPoint>> memory;     // per tier, ascending in time
  std::vector<std::vector<RatePoint>> link_rates;   // per link, ascending in time
  std::vector<Residency> residency;                 // ascending in begin
  std::vector<std::vector<std::uint32_t>> at_peak;  // per tier: residencies that stand at its peak, ascending
  std::optional<Provenance> provenance;             // absent with --no-provenance
};

// "h100-sxm-80gb + pcie=gen5".
std::string machine_text(const std::string& machine, const std::vector<std::string>& overrides);

// What differs from a plain run besides rewriters and overrides: "pager lru", "allocator ideal", "scale kernels=1.1".
std::vector<std::string> settings_text(const RunChanges& changes, const std::string& pager,
                                       const std::string& allocator, const std::string& allocator_settings);

// Requested bytes by storage kind, from `time` on.
struct KindPoint {
  Time time{};
  Bytes by_kind[kStorageKinds] = {};
};
// From the residency intervals; untracked bytes of the trace count as `unknown` in the tier "hbm" of their rank.
// One point per instant at which something changes. REQUIRES: tier < run.machine.tiers.size().
std::vector<KindPoint> memory_by_kind(const Run& run, int tier);

// One window of time that is accounted for as a step: from its host boundary to the next of its rank, or to the end of
// that rank's work. A trace without steps has one window per rank, named "all", from 0 to the end of its work.
//
// What a GPU still does of the steps before, when a capture begins, is no step's: the last window ends with the GPU,
// which may be as far behind the host there as it is at the beginning. So nothing of a rank counts before as much time
// has passed as its GPU is behind the host both when its first window begins and when its last work is launched:
// windows begin later, and those that the host is through with before are empty.
struct StepWindow {
  std::string name;
  Time begin{}, end{};
  std::uint16_t rank = 0;  // whose step it is: an index into Trace::rank_table, 0 where that is empty
  Duration behind{};       // by which it begins later than the host's boundary
};
std::vector<StepWindow> step_windows(const Run& run);
// The mean length of these, over the steps of all ranks.
Duration mean_step(const Run& run);

// When each rank's work ended, host and device: one entry, the end of the run, where the trace holds one rank.
std::vector<Time> rank_ends(const Run& run);

}  // namespace memwall
