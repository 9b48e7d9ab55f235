#include "traces/run/run_recorder.h"

#include <utility>

#include "sim/machine/rank_machine.h"

namespace memwall {
namespace {

bool between(Bytes a, Bytes b, Bytes c) { return (a <= b && b <= c) || (a >= b && b >= c); }

// Is the middle one of three points in a row, of which the last two share an instant, no turning point?
bool is_passing(const MemoryPoint& a, const MemoryPoint& b, const MemoryPoint& c) {
  return between(a.allocated, b.allocated, c.allocated) && between(a.requested, b.requested, c.requested) &&
         between(a.reserved, b.reserved, c.reserved);
}

}  // namespace

RunRecorder::RunRecorder(const Trace& trace, const RankMachine& machine, Observer* next)
    : next_(next),
      memory_(machine.tiers.size()),
      link_rates_(machine.links.size()),
      open_(trace.storages.size(), kNowhere),
      peak_change_(machine.tiers.size(), 0),
      peak_allocated_(machine.tiers.size(), 0) {
  // What is in use before the first storage is placed.
  const std::vector<Bytes> untracked = untracked_by_tier(machine, trace);
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    memory_[i].push_back({Time{}, untracked[i], untracked[i], untracked[i]});
    peak_allocated_[i] = untracked[i];
  }
  for (auto& rates : link_rates_) rates.push_back({});
  residency_.reserve(trace.storages.size());
  order_.reserve(trace.storages.size());
  std::vector<std::size_t> of_tier(memory_.size(), 0);  // storages that begin in it
  std::vector<int> tier_of_place;
  for (const std::string& place : trace.places) tier_of_place.push_back(machine.tier(place));
  for (const Storage& storage : trace.storages)
    if (const int tier = tier_of_place[storage.place]; tier >= 0) ++of_tier[static_cast<std::size_t>(tier)];
  for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i].reserve(1 + 2 * of_tier[i]);
}

void RunRecorder::on_memory(Time time, int tier, const Usage& usage) {
  if (next_) next_->on_memory(time, tier, usage);
  const auto t = static_cast<std::size_t>(tier);
  auto& points = memory_[t];
  if (usage.allocated > peak_allocated_[t]) {
    peak_allocated_[t] = usage.allocated;
    peak_change_[t] = changes_ + 1;  // the residency that follows this call belongs to it
  }
  const MemoryPoint point{time, usage.allocated, usage.requested, usage.reserved};
  const std::size_t n = points.size();
  if (n >= 2 && points[n - 1].time == time && is_passing(points[n - 2], points[n - 1], point))
    points[n - 1] = point;
  else
    points.push_back(point);
}

void RunRecorder::on_residency(Time time, StorageId storage, int tier, bool begins) {
  if (next_) next_->on_residency(time, storage, tier, begins);
  ++changes_;
  if (begins) {
    open_[storage] = static_cast<std::uint32_t>(residency_.size());
    residency_.push_back({storage, static_cast<std::uint16_t>(tier), time, kNever});
    order_.push_back({changes_, 0});
  } else if (open_[storage] != kNowhere) {
    residency_[open_[storage]].end = time;
    order_[open_[storage]].end = changes_;
    open_[storage] = kNowhere;
  }
}

void RunRecorder::on_link_rate(Time time, int link, double bytes_per_second) {
  if (next_) next_->on_link_rate(time, link, bytes_per_second);
  auto& rates = link_rates_[static_cast<std::size_t>(link)];
  if (rates.back().time == time)
    rates.back().bytes_per_second = bytes_per_second;
  else if (rates.back().bytes_per_second != bytes_per_second)
    rates.push_back({time, bytes_per_second});
}

void RunRecorder::on_progress(Time time, double share) {
  if (next_) next_->on_progress(time, share);
}

void RunRecorder::finish(Run& run) {
  for (Residency& residency : residency_)
    if (residency.end == kNever) residency.end = run.result.end;
  run.at_peak.assign(memory_.size(), {});
  for (std::uint32_t i = 0; i < residency_.size(); ++i) {
    const std::uint64_t peak = peak_change_[residency_[i].tier];
    if (order_[i].begin <= peak && (order_[i].end == 0 || order_[i].end > peak))
      run.at_peak[residency_[i].tier].push_back(i);
  }
  run.memory = std::move(memory_);
  run.link_rates = std::move(link_rates_);
  run.residency = std::move(residency_);
}

Run simulate_and_record(SharedTrace trace, const Machine& machine, const RunSettings& settings) {
  Run run;
  run.trace = std::move(trace);
  run.machine = machine_of_ranks(machine, run.trace);
  run.policies = settings.policies;
  run.pager = settings.pager_text;
  run.allocator = settings.allocator;
  run.allocator_settings = to_string(settings.allocator_settings);
  run.inputs = settings.inputs;
  run.changes = settings.changes;
  SimulationOptions options{settings.allocator,          settings.pager,  settings.observer,
                            settings.allocator_settings, settings.cached, settings.first_step};
  if (!settings.record) {
    run.result = simulate(run.trace, run.machine, options);
    return run;
  }
  RunRecorder recorder(run.trace, run.machine, settings.observer);
  options.observer = &recorder;
  run.result = simulate(run.trace, run.machine, options);
  recorder.finish(run);
  return run;
}

}  // namespace memwall
