// Where storages hold data on the device's clock, read off the text of traces/run/analysis/device_occupancy.h storage
// by storage: each looks at every op of the run. For tests that compare.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

class DeviceOccupancyReference {
 public:
  explicit DeviceOccupancyReference(const Run& run) : run_(run) {
    for (StorageId s = 0; s < run.trace->storages.size(); ++s) add(s);
  }

  const std::vector<Residency>& lives() const { return lives_; }  // in no order

  Bytes held(int tier, Time at, StorageKind kind) const {
    const std::vector<Bytes> untracked = untracked_by_tier(run_.machine, run_.trace);
    Bytes sum = kind == StorageKind::unknown ? untracked[static_cast<std::size_t>(tier)] : 0;
    for (const Residency& life : lives_)
      if (life.tier == tier && life.begin <= at && at < life.end && run_.trace->storages[life.storage].kind == kind)
        sum += run_.trace->storages[life.storage].bytes;
    return sum;
  }
  Bytes held(int tier, Time at) const {
    Bytes sum = 0;
    for (int kind = 0; kind < kStorageKinds; ++kind) sum += held(tier, at, static_cast<StorageKind>(kind));
    return sum;
  }

 private:
  void add(StorageId s) {
    const auto first = std::find_if(run_.residency.begin(), run_.residency.end(),
                                    [&](const Residency& residency) { return residency.storage == s; });
    if (first == run_.residency.end()) return;
    std::optional<OpId> alloc = op_on(s, OpKind::alloc), freed = op_on(s, OpKind::free);
    const Time allocated = alloc ? run_.result.records[*alloc].host_start : Time{};
    Time begin = allocated, end = freed ? run_.result.records[*freed].host_start : run_.result.end;
    bool named = false, by_host = false, written = false;
    Time first_write = kNever, last_use{};
    for (OpId id = 0; id < run_.trace->ops.size(); ++id) {
      const Op& op = run_.trace->ops[id];
      const OpRecord& record = run_.result.records[id];
      const bool on_device = runs_on_device(op.kind);
      if (on_device && record.start == kNever) continue;
      for (const Use& use : run_.trace->uses_of(op)) {
        if (use.storage != s) continue;
        named = true;
        last_use = std::max(last_use, on_device ? record.end : record.host_end);
        if (use.access == Access::read) continue;
        by_host = by_host || !on_device;
        written = true;
        if (on_device) first_write = std::min(first_write, record.start);
      }
    }
    const bool preexisting = run_.trace->storages[s].preexisting;
    if (named) {
      if (written && !by_host && !preexisting) begin = first_write;
      if (freed) end = last_use;
    } else if (run_.machine.tiers[first->tier].tier_class == TierClass::device) {
      begin = preexisting ? Time{} : kNever;
      if (freed) end = Time{};
      for (OpId id = alloc.value_or(0); id < freed.value_or(static_cast<OpId>(run_.trace->ops.size())); ++id) {
        const Op& op = run_.trace->ops[id];
        const OpRecord& record = run_.result.records[id];
        if (!runs_on_device(op.kind) || record.start == kNever || op.stream != run_.trace->storages[s].stream) continue;
        if (begin == kNever) begin = record.start;
        if (freed) end = record.end;
      }
    }
    std::uint8_t tier = first->tier;
    for (const MoveRecord& move : run_.result.moves) {
      if (move.storage != s || move.start == kNever) continue;
      note({s, tier, begin, move.end});
      tier = move.to;
      begin = move.start;
      end = std::max(end, move.end);
    }
    note({s, tier, begin, end});
  }

  void note(const Residency& life) {
    if (life.begin < life.end) lives_.push_back(life);
  }

  std::optional<OpId> op_on(StorageId s, OpKind kind) const {
    for (OpId id = 0; id < run_.trace->ops.size(); ++id)
      if (run_.trace->ops[id].kind == kind && run_.trace->ops[id].target == s) return id;
    return std::nullopt;
  }

  const Run& run_;
  std::vector<Residency> lives_;
};

}  // namespace memwall
