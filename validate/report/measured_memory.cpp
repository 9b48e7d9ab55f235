#include "validate/report/measured_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"
#include "sim/machine/rank_machine.h"
#include "sim/engine/tier_memory.h"

namespace memwall {
namespace {

// After so many passes a cache that still grows is not going to settle; two are enough for ordinary steps.
constexpr int kPasses = 4;

std::vector<int> tiers_of_places(const Trace& trace, const Machine& machine) {
  std::vector<int> tiers;
  for (const std::string& place : trace.places) {
    tiers.push_back(machine.tier(place));
    if (tiers.back() < 0)
      throw UsageError(fmt::format("Schedule \"{}\" keeps data in a tier \"{}\", which machine {} does not have.",
                                   trace.name, place, machine.name));
  }
  return tiers;
}

class MemoryReplay {
 public:
  MemoryReplay(const Trace& trace, const Machine& machine, Observer* observer)
      : trace_(trace),
        tier_of_place_(tiers_of_places(trace, machine)),
        memory_(trace, machine_of_ranks(machine, trace), tier_allocators(machine, "pytorch"), observer),
        lives_(trace.storages.size(), false) {}

  void pass(const std::vector<MemoryStep>& steps) {
    for (StorageId s = 0; s < trace_.storages.size(); ++s)
      if (trace_.storages[s].preexisting) place(Time{}, s);
    for (const MemoryStep& step : steps) {
      const Op& op = trace_.ops[step.op];
      if (op.kind == OpKind::alloc && !lives_[op.target])
        place(step.time, op.target);
      else if (op.kind == OpKind::free && lives_[op.target])
        remove(step.time, op.target);
      else
        throw InputError(
            fmt::format("Schedule \"{}\": by the times of its execution op {} {} storage {} while that {}.",
                        trace_.name, step.op, op.kind == OpKind::alloc ? "allocates" : "frees", op.target,
                        lives_[op.target] ? "lives" : "does not live"));
    }
  }

  void free_all(Time now) {
    for (StorageId s = 0; s < lives_.size(); ++s)
      if (lives_[s]) remove(now, s);
  }

  std::vector<TierResult> results() const { return memory_.results(); }

 private:
  void place(Time now, StorageId storage) {
    const int tier = tier_of_place_[trace_.storages[storage].place];
    if (!memory_.place(now, storage, tier)) memory_.place_unlimited(now, storage, tier);
    lives_[storage] = true;
  }

  void remove(Time now, StorageId storage) {
    memory_.remove(now, storage);
    lives_[storage] = false;
  }

  const Trace& trace_;
  const std::vector<int> tier_of_place_;
  TierMemory memory_;
  std::vector<bool> lives_;
};

}  // namespace

std::vector<MemoryStep> memory_steps(const Trace& trace, const std::vector<OpRecord>& records) {
  std::vector<MemoryStep> steps;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].kind == OpKind::alloc || trace.ops[id].kind == OpKind::free)
      steps.push_back({records[id].host_start, id});
  std::stable_sort(steps.begin(), steps.end(),
                   [](const MemoryStep& a, const MemoryStep& b) { return a.time < b.time; });
  return steps;
}

std::vector<TierResult> replay_memory(const Trace& trace, const Machine& machine, const std::vector<MemoryStep>& steps,
                                      Observer* observer) {
  MemoryReplay replay(trace, machine, observer);
  replay.pass(steps);
  std::vector<TierResult> results = replay.results();
  for (TierResult& tier : results) tier.missing = 0;
  return results;
}

std::vector<Usage> warm_peaks(const Trace& trace, const Machine& machine, const std::vector<MemoryStep>& steps) {
  MemoryReplay replay(trace, machine, nullptr);
  const Time end = steps.empty() ? Time{} : steps.back().time;
  std::vector<Usage> peaks(machine.tiers.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    replay.pass(steps);
    replay.free_all(end);
    const std::vector<TierResult> results = replay.results();
    bool grew = false;
    for (std::size_t t = 0; t < results.size(); ++t) {
      grew = grew || results[t].peak_reserved > peaks[t].reserved;
      peaks[t].allocated = results[t].peak_allocated;
      peaks[t].reserved = results[t].peak_reserved;
    }
    if (!grew) break;
  }
  return peaks;
}

}  // namespace memwall
