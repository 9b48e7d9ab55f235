#include "gui/model/storage_name.h"

#include <algorithm>

namespace memwall::gui {
namespace {

// Ops of one instant among which an allocation is looked for.
constexpr std::size_t kMostCandidates = 256;

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
  return call_at(run, OpKind::alloc, run.history->residencies()[life.front()].begin, storage);
}

}  // namespace

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
  return call_at(run, OpKind::free, run.history->residencies()[life.back()].end, storage);
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
