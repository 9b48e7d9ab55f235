#include "traces/run/analysis/energy.h"

#include <algorithm>
#include <set>

#include "sim/machine/rank_machine.h"

namespace memwall {
namespace {

constexpr double kPicojoule = 1e-12, kSecondsPerHour = 3600;

// All steps of the run, as seen by all ranks of the trace.
struct Period {
  Time begin{}, end{};
  double steps = 1;
  double seconds() const { return to_seconds(end - begin); }
};

Period period_of(const Run& run) {
  Period period{kNever, Time{}, 1};
  const std::vector<StepWindow> windows = step_windows(run);
  for (const StepWindow& window : windows) {
    period.begin = std::min(period.begin, window.begin);
    period.end = std::max(period.end, window.end);
  }
  const std::size_t ranks = std::max<std::size_t>(1, run.trace->rank_table.size());
  period.steps = std::max(1.0, static_cast<double>(windows.size()) / static_cast<double>(ranks));
  return period;
}

bool is_load(OpKind kind) { return kind == OpKind::kernel || kind == OpKind::memset || kind == OpKind::collective; }

// Per device: the time within the period in which at least one op that counts as load runs.
std::vector<Duration> busy_times(const Run& run, const Period& period, std::size_t devices) {
  std::vector<std::vector<std::pair<Time, Time>>> spans(devices);
  for (OpId id = 0; id < run.result.records.size(); ++id) {
    const OpRecord& record = run.result.records[id];
    if (record.start == kNever || !is_load(run.trace->ops[id].kind)) continue;
    const Time begin = std::max(record.start, period.begin), end = std::min(record.end, period.end);
    if (begin < end) spans[run.trace->streams[run.trace->ops[id].stream].device].emplace_back(begin, end);
  }
  std::vector<Duration> busy;
  for (auto& of_device : spans) {
    std::sort(of_device.begin(), of_device.end());
    Duration sum{};
    Time until{};
    for (const auto& [begin, end] : of_device) {
      if (end > until) sum += end - std::max(begin, until);
      until = std::max(until, end);
    }
    busy.push_back(sum);
  }
  return busy;
}

// Bytes of one copy of the program that are read from or written to each tier.
std::vector<double> tier_traffic(const Run& run) {
  std::vector<double> bytes(run.machine.tiers.size(), 0);
  std::vector<int> tier_of_place;
  for (const std::string& place : run.trace->places) tier_of_place.push_back(run.machine.tier(place));
  const int hbm = run.machine.tier("hbm"), host = run.machine.tier("host");
  const auto add = [&](int tier, Bytes moved) {
    if (tier < 0) return;
    const auto index = static_cast<std::size_t>(tier);
    bytes[index] += static_cast<double>(moved) / run.machine.tiers[index].compression_ratio;
  };
  const auto place = [&](std::uint8_t index) { return index < tier_of_place.size() ? tier_of_place[index] : -1; };
  const auto worked_in = [&](const Op& op) {
    const int tier = place(op.from);
    const bool in_host = tier < 0 || run.machine.tiers[static_cast<std::size_t>(tier)].tier_class == TierClass::device;
    return in_host ? host : tier;
  };
  for (const Op& op : run.trace->ops) {
    if (op.kind == OpKind::copy || op.kind == OpKind::storage_io) {
      add(place(op.from), op.bytes);
      add(place(op.to), op.bytes);
    } else if (op.kind == OpKind::host_work) {
      add(worked_in(op), op.bytes);
    } else if (op.kind == OpKind::kernel || op.kind == OpKind::memset) {
      add(hbm, op.bytes);
    }
  }
  for (const MoveRecord& move : run.result.moves) {
    add(move.from, move.bytes);
    add(move.to, move.bytes);
  }
  return bytes;
}

EnergyShare share_of(const std::string& name, double bytes, double picojoules_per_byte, bool in_gpu_power) {
  EnergyShare share{name, bytes, std::nullopt, in_gpu_power};
  if (picojoules_per_byte > 0) share.joules = bytes * picojoules_per_byte * kPicojoule;
  return share;
}

void add_traffic(const Run& run, double steps, StepEnergyPrice& energy_price) {
  const RankMachine& machine = run.machine;
  const double ranks = run.trace->ranks;
  std::set<std::size_t> memory_links;  // of the GPUs
  for (const RankView& view : machine.views)
    if (!view.link.empty()) memory_links.insert(view.link[machine.one.hbm_link]);
  for (std::size_t l = 0; l < machine.links.size() && l < run.result.links.size(); ++l) {
    // A link's bytes are those of all folded ranks behind it; there are as many such links as it takes for all ranks.
    const double behind = std::max(1u, std::min(run.trace->ranks, machine.links[l].sharers));
    const double bytes = static_cast<double>(run.result.links[l].bytes) * ranks / behind / steps;
    energy_price.links.push_back(
        share_of(machine.links[l].name, bytes, machine.links[l].picojoules_per_byte, memory_links.contains(l)));
  }
  const std::vector<double> traffic = tier_traffic(run);
  for (std::size_t t = 0; t < machine.tiers.size(); ++t)
    energy_price.tiers.push_back(share_of(machine.tiers[t].name, traffic[t] * ranks / steps,
                                     machine.tiers[t].picojoules_per_byte,
                                     machine.tiers[t].tier_class == TierClass::device));
}

void sum_energy(const Machine& machine, StepEnergyPrice& energy_price) {
  if (machine.watts <= 0) energy_price.missing.emplace_back("power");
  if (machine.idle_watts <= 0) energy_price.missing.emplace_back("idle_power");
  if (!energy_price.missing.empty()) {
    energy_price.gpu_idle = energy_price.gpu_load = 0;
    return;
  }
  double sum = energy_price.gpu_idle + energy_price.gpu_load + energy_price.host.value_or(0);
  for (const auto* shares : {&energy_price.links, &energy_price.tiers})
    for (const EnergyShare& share : *shares)
      if (!share.in_gpu_power) sum += share.joules.value_or(0);
  energy_price.energy = sum;
}

}  // namespace

StepEnergyPrice step_energy_price(const Run& run) {
  StepEnergyPrice energy_price;
  std::set<std::uint16_t> devices;
  std::size_t most = 1;
  for (const Stream& stream : run.trace->streams) {
    devices.insert(stream.device);
    most = std::max<std::size_t>(most, stream.device + 1u);
  }
  const double of_trace = static_cast<double>(std::max<std::size_t>(1, devices.size()));
  const double ranks = run.trace->ranks, gpus = of_trace * ranks;
  energy_price.gpus = static_cast<std::uint32_t>(gpus);
  const Period period = period_of(run);
  const double step = period.seconds() / period.steps;
  double busy = 0;  // seconds of a step, of the trace's GPUs
  for (const Duration d : busy_times(run, period, most)) busy += to_seconds(d) / period.steps;
  if (step > 0) energy_price.busy_share = busy / (step * of_trace);
  energy_price.gpu_idle = run.machine.idle_watts * step * gpus;
  energy_price.gpu_load = (run.machine.watts - run.machine.idle_watts) * busy * ranks;
  if (run.machine.host.watts > 0) energy_price.host = run.machine.host.watts * step * gpus / run.machine.gpu_count;
  add_traffic(run, period.steps, energy_price);
  sum_energy(run.machine, energy_price);
  if (run.machine.dollars_per_hour > 0)
    energy_price.price = run.machine.dollars_per_hour / kSecondsPerHour * step * gpus;
  else
    energy_price.missing.emplace_back("price");
  return energy_price;
}

}  // namespace memwall
