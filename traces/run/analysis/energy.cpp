#include "traces/run/analysis/energy.h"

#include <algorithm>
#include <set>

#include "sim/machine/hbm_traffic.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/ranks.h"
#include "traces/run/analysis/run_period.h"
#include "traces/run/analysis/run_scan.h"

namespace memwall {
namespace {

constexpr double kPicojoule = 1e-12, kSecondsPerHour = 3600;

bool is_load(OpKind kind) { return kind == OpKind::kernel || kind == OpKind::memset || kind == OpKind::collective; }

// Devices are counted over all ranks.
std::size_t device_count(const Trace& trace) {
  std::size_t most = 1;
  for (const Stream& stream : trace.streams) most = std::max<std::size_t>(most, stream.device + 1u);
  return most;
}

// How many ranks of the job run each program of the trace.
std::vector<double> ranks_by_program(const Trace& trace) {
  if (trace.rank_table.empty()) return {static_cast<double>(trace.ranks)};
  std::vector<double> ranks;
  for (const Rank& rank : trace.rank_table)
    ranks.push_back(static_cast<double>(trace.ranks) * (1.0 + static_cast<double>(rank.stands_for.size())));
  return ranks;
}

// How many links of the job each link of the ranks' machine stands for: its bytes are those of all ranks behind it.
std::vector<double> links_of_job(const RankMachine& machine, const Trace& trace) {
  const std::vector<double> ranks = ranks_by_program(trace);
  std::vector<double> count(machine.links.size(), 1);
  if (trace.rank_table.empty()) {
    for (std::size_t l = 0; l < count.size(); ++l)
      count[l] = ranks.front() / std::max(1u, std::min(trace.ranks, machine.links[l].sharers));
    return count;
  }
  std::vector<bool> known(count.size(), false);
  for (std::size_t r = 0; r < machine.views.size() && r < ranks.size(); ++r)
    for (std::uint16_t l = 0; l < machine.views[r].link.size(); ++l) {
      const std::size_t link = machine.views[r].link[l];
      if (link < count.size() && !known[link]) count[link] = ranks[r] / std::max(1.0, machine.views[r].times(l));
      if (link < count.size()) known[link] = true;
    }
  return count;
}

EnergyShare share_of(const std::string& name, double bytes, double picojoules_per_byte, bool in_gpu_power) {
  EnergyShare share{name, bytes, std::nullopt, in_gpu_power};
  if (picojoules_per_byte > 0) share.joules = bytes * picojoules_per_byte * kPicojoule;
  return share;
}

// `traffic`: bytes by tier that the run's ops and moves read or write.
void add_traffic(const Run& run, const std::vector<double>& traffic, double steps, StepEnergyPrice& energy_price) {
  const RankMachine& machine = run.machine;
  const std::vector<double> count = links_of_job(machine, run.trace);
  std::set<std::size_t> memory_links;  // of the GPUs
  for (const RankView& view : machine.views)
    if (!view.link.empty()) memory_links.insert(view.link[machine.one.hbm_link]);
  for (std::size_t l = 0; l < machine.links.size() && l < run.result.links.size(); ++l) {
    const double bytes = static_cast<double>(run.result.links[l].bytes) * count[l] / steps;
    energy_price.links.push_back(
        share_of(machine.links[l].name, bytes, machine.links[l].picojoules_per_byte, memory_links.contains(l)));
  }
  for (std::size_t t = 0; t < machine.tiers.size(); ++t)
    energy_price.tiers.push_back(share_of(machine.tiers[t].name, traffic[t] / steps,
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

LoadCollector::LoadCollector(const Run& run)
    : run_(run),
      devices_(device_count(run.trace)),
      tier_bytes_(run.machine.tiers.size(), 0),
      hbm_(run.machine.tier("hbm")),
      host_(run.machine.tier("host")),
      ranks_(ranks_by_program(run.trace)) {
  const RunPeriod period = run_period(run);
  begin_ = period.begin;
  end_ = period.end;
  device_ranks_.assign(devices_.size(), ranks_.front());
  for (const Stream& stream : run.trace->streams)
    device_ranks_[stream.device] = ranks_[stream.rank < ranks_.size() ? stream.rank : 0];
  for (const std::string& place : run.trace->places) tier_of_place_.push_back(run.machine.tier(place));
}

void LoadCollector::add(OpId first, OpId last) {
  const Trace& trace = run_.trace;
  for (OpId id = first; id < last; ++id) {
    const Op& op = trace.ops[id];
    times_ = ranks_[ranks_.size() == 1 ? 0 : rank_of(trace, op)];
    add_traffic(op);
    if (id >= run_.result.records.size() || !is_load(op.kind)) continue;
    const OpRecord& record = run_.result.records[id];
    if (record.start == kNever) continue;
    const Time begin = std::max(record.start, begin_), end = std::min(record.end, end_);
    if (begin < end) devices_[trace.streams[op.stream].device].add(op.stream, begin, end);
  }
}

void LoadCollector::add_traffic(const Op& op) {
  const auto tier_of = [&](std::uint8_t place) { return place < tier_of_place_.size() ? tier_of_place_[place] : -1; };
  if (op.kind == OpKind::copy || op.kind == OpKind::storage_io) {
    add_bytes(tier_of(op.from), op.bytes);
    add_bytes(tier_of(op.to), op.bytes);
  } else if (op.kind == OpKind::host_work) {
    const int tier = tier_of(op.from);
    const bool in_host = tier < 0 || run_.machine.tiers[static_cast<std::size_t>(tier)].tier_class == TierClass::device;
    add_bytes(in_host ? host_ : tier, op.bytes);
  } else if (op.kind == OpKind::kernel || op.kind == OpKind::memset) {
    const Machine& one = run_.machine.one;
    add_bytes(hbm_, one.links.empty() ? op.bytes : hbm_traffic(one.gpu, one.links[one.hbm_link].bandwidth, op));
  }
}

void LoadCollector::add_bytes(int tier, Bytes moved) {
  if (tier < 0) return;
  const auto index = static_cast<std::size_t>(tier);
  tier_bytes_[index] += static_cast<double>(moved) * times_ / run_.machine.tiers[index].compression_ratio;
}

double LoadCollector::gpus() const {
  std::set<std::uint16_t> used;
  for (const Stream& stream : run_.trace->streams) used.insert(stream.device);
  if (used.empty()) return ranks_.front();
  double gpus = 0;
  for (const std::uint16_t device : used) gpus += device_ranks_[device];
  return gpus;
}

double LoadCollector::take_busy_seconds() {
  double busy = 0;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Duration sum{};
    for (const Interval& interval : devices_[d].take()) sum += interval.end - interval.begin;
    busy += to_seconds(sum) * device_ranks_[d];
  }
  return busy;
}

std::vector<double> LoadCollector::take_tier_bytes() {
  times_ = ranks_.front();  // pagers page for one rank
  for (const MoveRecord& move : run_.result.moves) {
    add_bytes(move.from, move.bytes);
    add_bytes(move.to, move.bytes);
  }
  return std::move(tier_bytes_);
}

StepEnergyPrice step_energy_price(const Run& run) {
  LoadCollector load(run);
  scan(run, load);
  return step_energy_price(run, load);
}

StepEnergyPrice step_energy_price(const Run& run, LoadCollector& load) {
  StepEnergyPrice energy_price;
  const double gpus = load.gpus();
  energy_price.gpus = static_cast<std::uint32_t>(gpus);
  const RunPeriod period = run_period(run);
  const double step = period.seconds_per_step();
  const double busy = load.take_busy_seconds() / period.steps;  // of a step, of all GPUs
  if (step > 0) energy_price.busy_share = busy / (step * gpus);
  energy_price.gpu_idle = run.machine.idle_watts * step * gpus;
  energy_price.gpu_load = (run.machine.watts - run.machine.idle_watts) * busy;
  if (run.machine.host.watts > 0) energy_price.host = run.machine.host.watts * step * gpus / run.machine.gpu_count;
  add_traffic(run, load.take_tier_bytes(), period.steps, energy_price);
  sum_energy(run.machine, energy_price);
  if (run.machine.dollars_per_hour > 0)
    energy_price.price = run.machine.dollars_per_hour / kSecondsPerHour * step * gpus;
  else
    energy_price.missing.emplace_back("price");
  return energy_price;
}

}  // namespace memwall
