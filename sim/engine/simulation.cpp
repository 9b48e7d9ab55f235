#include "sim/engine/simulation.h"

#include <algorithm>

#include "sim/engine/engine.h"
#include "sim/error.h"
#include "sim/machine/rank_machine.h"
#include "sim/memory/arena_plan.h"
#include "sim/trace/ranks.h"
#include "sim/word_of.h"

namespace memwall {
namespace {

constexpr const char* kArena = "arena";

// When storages begin and cease to occupy each tier, counted in such changes, by begin.
class LifetimeRecorder : public Observer {
 public:
  LifetimeRecorder(const Trace& trace, const Machine& machine)
      : trace_(trace), open_(trace.storages.size()), tiers_(machine.tiers.size()) {}

  void on_residency(Time, StorageId storage, int tier, bool begins) override {
    ++changes_;
    auto& lifetimes = tiers_[static_cast<std::size_t>(tier)];
    if (begins) {
      open_[storage] = lifetimes.size();
      lifetimes.push_back({changes_, ~std::uint64_t{0}, trace_.storages[storage].bytes});
    } else {
      lifetimes[open_[storage]].end = changes_;
    }
  }

  // By tier.
  std::vector<std::vector<Lifetime>> lifetimes() && {
    for (auto& tier : tiers_)
      for (Lifetime& lifetime : tier) lifetime.end = std::min(lifetime.end, changes_ + 1);
    return std::move(tiers_);
  }

 private:
  const Trace& trace_;
  std::vector<std::size_t> open_;  // per storage: its last lifetime
  std::vector<std::vector<Lifetime>> tiers_;
  std::uint64_t changes_ = 0;
};

SimulationResult simulate_planned(const Trace& trace, const RankMachine& ranks, const SimulationOptions& options) {
  LifetimeRecorder recorder(trace, ranks);
  SimulationOptions first;
  first.allocator = "ideal";
  first.observer = &recorder;
  Engine(trace, ranks, first, tier_allocators(ranks, first.allocator)).run();
  const std::vector<std::vector<Lifetime>> lifetimes = std::move(recorder).lifetimes();
  TierAllocators planned = tier_allocators(ranks, "ideal", options.allocator_settings);
  planned.device = [&lifetimes](std::size_t tier, Bytes capacity) {
    return make_planned_allocator(lifetimes[tier], plan_arena(lifetimes[tier]), capacity);
  };
  return Engine(trace, ranks, options, planned).run();
}

}  // namespace

const std::vector<std::string>& run_allocator_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = allocator_names();
    all.emplace_back(kArena);
    return all;
  }();
  return names;
}

void require_allocator(const SimulationOptions& options) {
  const std::vector<std::string>& names = run_allocator_names();
  if (std::find(names.begin(), names.end(), options.allocator) == names.end())
    refuse_allocator(options.allocator, names);
  if (options.allocator == kArena && options.pager != nullptr)
    throw UsageError(
        "The allocator 'arena' plans every offset before the run, and a pager decides during the run what moves; "
        "expected another allocator, or no pager.");
  AllocatorSettings device = options.allocator_settings;
  device.pinned_reserve_segment_size = 0;  // of the host's allocator
  if (options.allocator != "pytorch" && device != AllocatorSettings{})
    throw UsageError("The settings '" + to_string(device) +
                     "' are those of the allocator 'pytorch'; the allocator given is '" + options.allocator + "'.");
}

SimulationResult simulate(const Trace& trace, const Machine& machine, const SimulationOptions& options) {
  return simulate(trace, machine_of_ranks(machine, trace), options);
}

SimulationResult simulate(const Trace& trace, const RankMachine& ranks, const SimulationOptions& options) {
  require_allocator(options);
  if (options.allocator == kArena) return simulate_planned(trace, ranks, options);
  return Engine(trace, ranks, options, tier_allocators(ranks, options.allocator, options.allocator_settings)).run();
}

std::string_view to_string(WaitReason reason) {
  static constexpr std::string_view words[] = {
      "none",         "program_order", "hand_over", "synchronize", "launch_queue", "memory", "launch",
      "stream_order", "event",         "occupancy", "copy_engine", "page_fault",   "peer"};
  return word_of(words, reason);
}

}  // namespace memwall
