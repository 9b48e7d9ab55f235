#include "gui/model/resident_set.h"

#include <algorithm>

namespace memwall::gui {
namespace {

// Ops of one instant among which an allocation is looked for.
constexpr std::size_t kMostCandidates = 256;
constexpr std::size_t kMostPoints = 65536;  // of one instant

bool larger(const ResidentRow& a, const ResidentRow& b) {
  return a.bytes != b.bytes ? a.bytes > b.bytes : a.storage < b.storage;
}

// As the allocator counts after the instant.
void count_allocator(const OpenRun& run, ResidentSet& set) {
  const std::vector<MemoryHigh> points = run.source->memory(set.tier, set.time, set.time, kMostPoints);
  for (const MemoryHigh& point : points)
    if (point.time <= set.time) {
      set.allocated = point.allocated;
      set.reserved = point.reserved;
    }
}

std::optional<OpId> first_writer(const OpenRun& run, StorageId storage) {
  // Nearly always the first use of all; a storage may be read often before, where it is never written.
  for (std::size_t most = 8;; most *= 64) {
    const std::vector<StorageUse> uses = run.source->uses_of(storage, most);
    for (const StorageUse& use : uses)
      if (use.access == Access::write) return use.op;
    if (uses.size() < most) return std::nullopt;
  }
}

// Among the calls of a block of ops: the one of a kind, alloc or free, that lasts at `time` and is of `storage`.
std::optional<OpId> call_in(const OpenRun& run, std::uint32_t block, OpKind kind, Time time, StorageId storage) {
  const std::shared_ptr<const LoadedBlock> loaded = run.spans->load(block);
  const SpanBlock& spans = loaded->spans;
  std::size_t candidates = 0;
  for (std::size_t i = 0; i < spans.size() && candidates < kMostCandidates; ++i) {
    if (spans.kind[i] != kind || spans.call_begin[i] == kNever) continue;
    if (time < spans.call_begin[i] || time > spans.call_begin[i] + spans.call_time[i]) continue;
    ++candidates;
    const auto id = static_cast<OpId>(spans.first + i);
    if (run.source->op(id).op.target == storage) return id;
  }
  return std::nullopt;
}

std::optional<OpId> call_at(const OpenRun& run, OpKind kind, Time time, StorageId storage) {
  const RunOutline& outline = run.outline();
  for (std::size_t lane = 0; lane < outline.lanes.size(); ++lane) {
    if (outline.lanes[lane].kind != RunLaneKind::thread) continue;
    for (const LaneBlock& block : outline.blocks[lane])
      if (block.begin <= time && time <= block.end)
        if (const auto found = call_in(run, block.block, kind, time, storage)) return found;
  }
  return std::nullopt;
}

std::optional<OpId> allocation_of(const OpenRun& run, StorageId storage) {
  if (!run.history) return std::nullopt;
  const std::vector<std::uint32_t> life = run.history->life(storage);
  if (life.empty()) return std::nullopt;
  return call_at(run, OpKind::alloc, run.history->stays()[life.front()].begin, storage);
}

}  // namespace

ResidentSet resident_set(const OpenRun& run, std::uint32_t tier, Time time) {
  const ResidencyHistory& history = *run.history;
  const auto& tiers = run.outline().run.result.tiers;
  ResidentSet set;
  set.tier = tier;
  set.time = time;
  set.untracked = history.untracked(tier);
  std::vector<std::uint32_t> alive;
  if (tier < tiers.size() && time == tiers[tier].peak_time) {
    alive = run.source->at_peak(tier);
    std::erase_if(alive, [&](std::uint32_t row) { return row >= history.stays().size(); });
    set.allocated = tiers[tier].peak_allocated;
    set.reserved = tiers[tier].peak_usage.reserved;
  } else {
    alive = history.alive(tier, time);
    count_allocator(run, set);
  }
  set.requested = set.untracked;
  set.by_kind[static_cast<std::size_t>(StorageKind::unknown)] = set.untracked;
  set.rows.reserve(alive.size());
  for (const std::uint32_t i : alive) {
    const Residency& stay = history.stays()[i];
    const Bytes bytes = history.storages().bytes[stay.storage];
    const StorageKind kind = history.storages().kind[stay.storage];
    set.rows.push_back({stay.storage, bytes, kind, stay.begin, stay.end});
    set.requested += bytes;
    set.by_kind[static_cast<std::size_t>(kind)] += bytes;
  }
  std::sort(set.rows.begin(), set.rows.end(), larger);
  return set;
}

std::optional<OpId> maker_of(const OpenRun& run, StorageId storage) {
  // What lived before the first op was made by none of them.
  if (run.history && run.history->storages().preexisting[storage]) return std::nullopt;
  if (const auto writer = first_writer(run, storage)) return writer;
  return allocation_of(run, storage);
}

std::optional<OpId> free_of(const OpenRun& run, StorageId storage) {
  if (!run.history) return std::nullopt;
  const std::vector<std::uint32_t> life = run.history->life(storage);
  if (life.empty()) return std::nullopt;
  return call_at(run, OpKind::free, run.history->stays()[life.back()].end, storage);
}

StorageName name_of(const OpenRun& run, StorageId storage) {
  StorageName name;
  if (run.history) name.label = run.source->text(run.history->storages().label[storage]);
  const std::optional<OpId> maker = maker_of(run, storage);
  if (!maker) return name;
  const OpDetail detail = run.source->op(*maker);
  name.module = detail.module;
  name.phase = detail.op.phase;
  if (name.label.empty()) name.label = detail.operator_name.empty() ? detail.name : detail.operator_name;
  return name;
}

}  // namespace memwall::gui
