#include "traces/run/analysis/device_occupancy.h"

#include <algorithm>
#include <numeric>

#include "traces/run/analysis/run_scan.h"

namespace memwall {
namespace {

constexpr std::uint16_t kInNoTier = 0xffff;

// Where each storage was first, by the host's clock.
std::vector<std::uint16_t> first_tiers(const Run& run) {
  std::vector<std::uint16_t> tiers(run.trace->storages.size(), kInNoTier);
  for (const Residency& residency : run.residency)
    if (tiers[residency.storage] == kInNoTier) tiers[residency.storage] = residency.tier;
  return tiers;
}

bool is_on_device(const Run& run, std::uint16_t tier) { return run.machine.tiers[tier].tier_class == TierClass::device; }

// A tier holds `bytes` more from `time` on; less where they are negative.
struct OccupancyChange {
  Time time{};
  Bytes bytes = 0;
};

// Ascending in time. A run's instants are spread over it: counted into as many pieces as there are changes, few fall
// into one, and this takes time in proportion to the changes.
std::vector<OccupancyChange> in_order_of_time(const std::vector<OccupancyChange>& changes, Time end) {
  const std::size_t pieces = changes.size() / 2 + 1;
  const double scale = static_cast<double>(pieces) / (static_cast<double>(end.count()) + 1);
  const auto piece_of = [&](Time time) {
    return std::min(pieces - 1, static_cast<std::size_t>(static_cast<double>(time.count()) * scale));
  };
  std::vector<std::uint32_t> next(pieces + 1, 0);
  for (const OccupancyChange& change : changes) ++next[piece_of(change.time) + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  std::vector<OccupancyChange> ordered(changes.size());
  for (const OccupancyChange& change : changes) ordered[next[piece_of(change.time)]++] = change;
  const auto earlier = [](const OccupancyChange& a, const OccupancyChange& b) { return a.time < b.time; };
  auto first = ordered.begin();
  for (std::size_t i = 0; i < pieces; ++i) {
    const auto last = ordered.begin() + next[i];  // by now where the following piece begins
    if (last - first > 1) std::sort(first, last, earlier);
    first = last;
  }
  return ordered;
}

std::vector<OccupancyChange> changes_of(const Run& run, const std::vector<Residency>& lifetimes, std::size_t tier) {
  std::vector<OccupancyChange> changes;
  changes.reserve(2 * static_cast<std::size_t>(std::count_if(
                          lifetimes.begin(), lifetimes.end(), [&](const Residency& life) { return life.tier == tier; })));
  for (const Residency& lifetime : lifetimes) {
    if (lifetime.tier != tier) continue;
    const Bytes bytes = run.trace->storages[lifetime.storage].bytes;
    changes.push_back({lifetime.begin, bytes});
    if (lifetime.end < run.result.end) changes.push_back({lifetime.end, -bytes});
  }
  return in_order_of_time(changes, run.result.end);
}

// The first instant at which most is held; what changes in one instant counts together.
Time time_of_most(const std::vector<OccupancyChange>& ordered) {
  Time time{};
  Bytes now = 0, most = 0;
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    now += ordered[i].bytes;
    if (i + 1 < ordered.size() && ordered[i + 1].time == ordered[i].time) continue;
    if (now > most) {
      most = now;
      time = ordered[i].time;
    }
  }
  return time;
}

}  // namespace

LifetimeCollector::LifetimeCollector(const Run& run) : run_(run) {
  if (!has_device_clock(run)) return;
  first_tier_ = first_tiers(run);
  storages_.resize(run.trace->storages.size());
  streams_.resize(run.trace->streams.size());
  for (StorageId s = 0; s < storages_.size(); ++s)
    if (run.trace->storages[s].preexisting) storages_[s].begin = Time{};
}

void LifetimeCollector::add(OpId first, OpId last) {
  if (storages_.empty()) return;
  const Trace& trace = run_.trace;
  for (OpId id = first; id < last; ++id) {
    const Op& op = trace.ops[id];
    const OpRecord& record = run_.result.records[id];
    if (op.kind == OpKind::alloc)
      allocate(op.target, record.host_start);
    else if (op.kind == OpKind::free)
      free(op.target, record.host_start);
    else if (runs_on_device(op.kind))
      run_on_stream(op, record);
    else if (op.use_count > 0)
      use_on_host(op, record);
  }
}

void LifetimeCollector::allocate(StorageId storage, Time time) {
  storages_[storage].allocated = time;
  streams_[run_.trace->storages[storage].stream].allocated.push_back(storage);
}

void LifetimeCollector::free(StorageId storage, Time time) {
  Held& held = storages_[storage];
  held.freed = time;
  if (!held.named && held.begin != kNever) held.end = streams_[run_.trace->storages[storage].stream].last_end;
}

void LifetimeCollector::run_on_stream(const Op& op, const OpRecord& record) {
  if (record.start == kNever) return;
  StreamState& stream = streams_[op.stream];
  for (const StorageId storage : stream.allocated)
    if (!storages_[storage].named && storages_[storage].freed == kNever) storages_[storage].begin = record.start;
  stream.allocated.clear();
  stream.last_end = record.end;
  for (const Use& use : run_.trace->uses_of(op)) {
    Held& held = name(use.storage);
    held.end = std::max(held.end, record.end);
    if (use.access == Access::write) held.begin = std::min(held.begin, record.start);
  }
}

// From now on its begin and end are those of ops that name it.
LifetimeCollector::Held& LifetimeCollector::name(StorageId storage) {
  Held& held = storages_[storage];
  if (held.named) return held;
  held.named = true;
  held.begin = kNever;
  held.end = Time{};
  return held;
}

void LifetimeCollector::use_on_host(const Op& op, const OpRecord& record) {
  for (const Use& use : run_.trace->uses_of(op)) {
    Held& held = name(use.storage);
    held.end = std::max(held.end, record.host_end);
    if (use.access == Access::write) held.by_host = true;
  }
}

// As if it never moved; of no length where it holds nothing.
Residency LifetimeCollector::lifetime_of(StorageId storage) const {
  const Held& held = storages_[storage];
  const bool preexisting = run_.trace->storages[storage].preexisting;
  Residency life{storage, first_tier_[storage], held.allocated, run_.result.end};
  if (unnamed_[storage]) {
    life.begin = held.begin;
    if (held.freed != kNever) life.end = held.end;
  } else if (held.named) {
    if (!preexisting && !held.by_host && held.begin != kNever) life.begin = held.begin;
    if (held.freed != kNever) life.end = held.end;
  } else if (held.freed != kNever) {
    life.end = held.freed;
  }
  return life;
}

std::vector<Residency> LifetimeCollector::take() {
  constexpr std::uint32_t kNowhere = 0xffffffff;
  std::vector<Residency> lives;
  lives.reserve(storages_.size());
  unnamed_.assign(storages_.size(), false);
  const auto& moves = run_.result.moves;
  std::vector<std::uint32_t> last(moves.empty() ? 0 : storages_.size(), kNowhere);  // of a storage's lives
  for (StorageId s = 0; s < storages_.size(); ++s) {
    if (first_tier_[s] == kInNoTier) continue;
    unnamed_[s] = !storages_[s].named && is_on_device(run_, first_tier_[s]);
    if (!last.empty()) last[s] = static_cast<std::uint32_t>(lives.size());
    lives.push_back(lifetime_of(s));
  }
  for (const MoveRecord& move : moves) {
    if (last[move.storage] == kNowhere || move.start == kNever) continue;
    Residency& before = lives[last[move.storage]];
    const Time moved = std::min(move.end, run_.result.end);
    const Residency after{move.storage, move.to, move.start, std::max(before.end, moved)};
    before.end = moved;
    last[move.storage] = static_cast<std::uint32_t>(lives.size());
    lives.push_back(after);
  }
  storages_ = {};
  std::erase_if(lives, [](const Residency& life) { return life.begin >= life.end; });
  return lives;
}

std::vector<DevicePeak> device_peaks(const Run& run, LifetimeCollector& lifetimes) {
  std::vector<DevicePeak> peaks;
  if (!has_device_clock(run)) return peaks;
  const std::vector<Residency> lives = lifetimes.take();
  const std::vector<Bytes> untracked = untracked_by_tier(run.machine, run.trace);
  for (std::size_t tier = 0; tier < run.machine.tiers.size(); ++tier) {
    DevicePeak peak;
    peak.time = time_of_most(changes_of(run, lives, tier));
    peak.by_kind[static_cast<std::size_t>(StorageKind::unknown)] = untracked[tier];
    for (const Residency& life : lives) {
      if (life.tier != tier || life.begin > peak.time || life.end <= peak.time) continue;
      const Storage& storage = run.trace->storages[life.storage];
      peak.by_kind[static_cast<std::size_t>(storage.kind)] += storage.bytes;
      if (lifetimes.is_unnamed(life.storage)) peak.unnamed += storage.bytes;
    }
    peak.bytes = std::accumulate(peak.by_kind.begin(), peak.by_kind.end(), Bytes{0});
    peaks.push_back(peak);
  }
  return peaks;
}

bool has_device_clock(const Run& run) {
  return run.trace->knowledge.dataflow && !run.residency.empty() && run.result.records.size() == run.trace->ops.size();
}

std::vector<Residency> device_residency(const Run& run) {
  LifetimeCollector lifetimes(run);
  scan(run, lifetimes);
  std::vector<Residency> lives = lifetimes.take();
  std::sort(lives.begin(), lives.end(), [](const Residency& a, const Residency& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.storage < b.storage;
  });
  return lives;
}

std::vector<KindPoint> device_memory_by_kind(const Run& run, int tier) {
  LifetimeCollector lifetimes(run);
  scan(run, lifetimes);
  const std::vector<Residency> lives = lifetimes.take();
  std::vector<KindPoint> points(1);
  const auto t = static_cast<std::size_t>(tier);
  points.back().by_kind[static_cast<int>(StorageKind::unknown)] = untracked_by_tier(run.machine, run.trace)[t];
  std::vector<std::pair<Time, std::uint32_t>> changes;  // of lives; twice their number, and 1 where they end
  for (std::uint32_t i = 0; i < lives.size(); ++i) {
    if (lives[i].tier != t) continue;
    changes.emplace_back(lives[i].begin, 2 * i);
    if (lives[i].end < run.result.end) changes.emplace_back(lives[i].end, 2 * i + 1);
  }
  std::sort(changes.begin(), changes.end());
  for (const auto& [time, change] : changes) {
    if (points.back().time != time) {
      points.push_back(points.back());
      points.back().time = time;
    }
    const Storage& storage = run.trace->storages[lives[change / 2].storage];
    points.back().by_kind[static_cast<int>(storage.kind)] += change % 2 == 1 ? -storage.bytes : storage.bytes;
  }
  return points;
}

std::vector<DevicePeak> device_peaks(const Run& run) {
  LifetimeCollector lifetimes(run);
  scan(run, lifetimes);
  return device_peaks(run, lifetimes);
}

}  // namespace memwall
