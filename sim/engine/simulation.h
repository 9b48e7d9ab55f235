// Runs a trace on a machine. Pure: same trace, machine and options, same result.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/engine/observer.h"
#include "sim/machine/rank_machine.h"
#include "sim/memory/allocator.h"
#include "sim/policy/pager.h"
#include "sim/trace/trace.h"

namespace memwall {

// Why something began when it did and not earlier: the last of its lower bounds to be met.
enum class WaitReason : std::uint8_t {
  none,           // nothing: it is the first
  program_order,  // host: the previous op of the thread
  hand_over,      // host: another thread
  synchronize,    // host: device work
  launch_queue,   // host: too many submitted calls
  memory,         // host: an allocation that did not fit
  launch,         // device: the host had not launched it yet
  stream_order,   // device: the predecessor in its stream
  event,          // device: an event of another stream
  occupancy,      // device: a kernel of several waves in another stream
  copy_engine,    // device: the engine served an earlier copy
  page_fault,     // device: data not resident
  peer            // device: a collective's last arriver
};
inline constexpr int kWaitReasons = 13;
std::string_view to_string(WaitReason reason);

// When an op happened. `host_*` is the call on its thread, `start`/`end` the work on its
// stream (kNever for ops without device work). Causes name the op that met the last bound.
struct OpRecord {
  Time host_start{}, host_end{};
  Time start = kNever, end = kNever;
  OpId host_cause = kNoOp, device_cause = kNoOp;
  WaitReason host_reason = WaitReason::none, device_reason = WaitReason::none;
  WaitReason host_end_reason = WaitReason::none;  // none: host_end was set by the call's own cost
  bool host_end_waited = false;                   // host_end was set by waiting (host_end_reason), not by own cost
  OpId host_end_cause = kNoOp;  // the device op whose end, or start, let the call return; kNoOp for a pager's moves
  // Of a collective that met those of other ranks: the last of them to begin, whose begin all waited for
  // (WaitReason::peer). kNoOp: it met none, or was itself the last.
  OpId peer = kNoOp;
};

// A move that a pager made.
struct MoveRecord {
  Time start{}, end{};
  StorageId storage = kNoStorage;
  std::uint16_t from = 0, to = 0;  // indices into Machine::tiers
  Bytes bytes = 0;
  OpId for_op = kNoOp;  // the op that needed it or the room it made
};

// The instant at which an allocator held most, and what it could not serve.
struct TierPressure {
  Usage at_peak_reserved;  // at the highest reserved; of such instants, the first of the highest allocated
  Time peak_reserved_time{};
  std::uint64_t ooms = 0;  // requests that found no memory, every try counted
};

// The first request that found no memory, and what the tier held at that instant.
struct RefusedRequest {
  StorageId storage = kNoStorage;  // kNoStorage: none was refused
  Time time{};
  Usage usage;                        // without it
  Bytes by_kind[kStorageKinds] = {};  // as requested; untracked bytes count as unknown
};

struct TierResult {
  Usage peak_usage;  // at the instant of the highest allocated
  Bytes peak_allocated = 0, peak_reserved = 0;
  Bytes peak_by_kind[kStorageKinds] = {};  // requested bytes at the instant of peak_allocated
  Bytes missing = 0;                       // allocated beyond the capacity, at worst; where memory was free but in
                                           // pieces, the request that found none; 0 = it fits
  Time peak_time{};
  std::vector<StorageId> largest_at_peak;  // ten, largest first
  AllocatorEvents allocator;
  // That host threads spent in the allocator's calls to the device, waiting for it included
  // (sim/engine/device_calls.h). Run files do not keep it.
  Duration device_calls{};
  TierPressure pressure;
  RefusedRequest refused;  // run files keep its storage and usage.allocated
};

struct LinkResult {
  Bytes bytes = 0;  // carried, multiplicity of folded ranks included
  Duration busy{};  // time with at least one flow
  // Of a link with a write cache (sim/engine/write_cache.h):
  Duration cache_full{};  // time in which writes went no faster than the drives empty it
  double cached = 0;      // bytes in it at the end of everything
};

struct StepResult {
  std::string name;
  Duration step_time{};  // host: this step's boundary to the next (or to the end of everything)
  Duration gpu_span{};   // first GPU start to last GPU end of the ops launched in the step
};

struct SimulationResult {
  Time end{};  // of everything, host and device
  Duration gpu_span{};
  std::vector<StepResult> steps;
  std::vector<OpRecord> records;  // one per op
  std::vector<MoveRecord> moves;
  std::vector<TierResult> tiers;  // as Machine::tiers, of several ranks' machine (sim/machine/rank_machine.h)
  std::vector<LinkResult> links;  // as Machine::links, likewise
  bool fits = true;
  std::uint64_t events = 0;        // processed by the engine
  std::uint64_t paging_steps = 0;  // uses and storages that paging looked at: in proportion to uses and moves
};

struct SimulationOptions {
  // Of device tiers: a name of make_allocator, or "arena": every storage has an offset that was planned ahead. The
  // lifetimes for that come from a simulation before this one, with "ideal": neither calls the device while a step
  // runs, so they are the same. What is reserved is the size of the plan, from the start on.
  std::string allocator = "pytorch";
  Pager* pager = nullptr;                  // not owned; null = none
  Observer* observer = nullptr;            // not owned; null = none
  AllocatorSettings allocator_settings{};  // of "pytorch", and of pinned host memory
  // Bytes that steps before have left in the write caches of drives, by link of the ranks' machine; empty: none.
  std::vector<double> cached{};
  // The first step of a job: what its allocators obtain costs time, because their caches are empty. Else the step is
  // one of many, which finds there what the steps before left (sim/engine/device_calls.h).
  bool first_step = false;
};

// The names that SimulationOptions::allocator knows, the default first.
const std::vector<std::string>& run_allocator_names();

// Throws UsageError where the allocator is unknown, cannot have these settings, or does not go with a pager.
void require_allocator(const SimulationOptions& options);

// A trace of several ranks runs on as many GPUs of the machine, which is written out for them as
// sim/machine/rank_machine.h says: the result's tiers and links are those of that machine. No pager then. Throws
// UsageError if the trace names a place or a route that the machine lacks, and what require_allocator throws;
// InputError where ops wait for each other in a circle. REQUIRES: check(trace) is empty.
SimulationResult simulate(const Trace& trace, const Machine& machine, const SimulationOptions& options);
// The same on a machine that is written out for the ranks of this trace.
SimulationResult simulate(const Trace& trace, const RankMachine& ranks, const SimulationOptions& options);

}  // namespace memwall
