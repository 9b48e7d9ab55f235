#include "gui/model/residency_history.h"

#include <algorithm>

#include "gui/model/instant_order.h"
#include "gui/model/load_progress.h"
#include "gui/model/tier_changes.h"
#include "sim/error.h"
#include "sim/machine/rank_machine.h"
#include "traces/run/analysis/device_occupancy.h"

namespace memwall::gui {
namespace {

// Rows are numbered with 31 bits: the last one says whether a residency begins or ends.
constexpr std::size_t kMostResidencies = std::size_t{1} << 31;

void check(const std::vector<Residency>& residencies, std::size_t storages, std::size_t tiers) {
  const auto refuse = [](std::size_t row, const std::string& what) {
    throw InputError("Row " + std::to_string(row) + " of the run's residencies " + what + ".");
  };
  if (residencies.size() >= kMostResidencies)
    throw InputError("The run has " + std::to_string(residencies.size()) +
                     " residencies of storages in tiers; expected at most " + std::to_string(kMostResidencies - 1) +
                     ".");
  for (std::size_t row = 0; row < residencies.size(); ++row) {
    const Residency& residency = residencies[row];
    if (residency.storage >= storages)
      refuse(row,
             "is of storage " + std::to_string(residency.storage) + "; expected one below " + std::to_string(storages));
    if (residency.tier >= tiers)
      refuse(row, "is in tier " + std::to_string(residency.tier) + "; expected one below " + std::to_string(tiers));
    if (residency.end < residency.begin) refuse(row, "ends before it begins");
    if (row > 0 && residency.begin < residencies[row - 1].begin) refuse(row, "begins before the one that precedes it");
  }
}

// All changes of a tier by time, of each instant begins before ends; on the device's clock ends before begins.
std::vector<TierChange> changes_of(const ResidencyColumns& columns, std::uint8_t tier, MemoryClock clock) {
  std::vector<std::uint32_t> begins;
  std::vector<std::pair<Time, std::uint32_t>> ends;
  for (std::uint32_t row = 0; row < columns.residencies.size(); ++row) {
    const Residency& residency = columns.residencies[row];
    if (residency.tier != tier) continue;
    begins.push_back(row);
    if (residency.end < columns.end) ends.emplace_back(residency.end, row);
  }
  std::sort(ends.begin(), ends.end());
  std::vector<TierChange> changes;
  changes.reserve(begins.size() + ends.size());
  auto end = ends.begin();
  for (const std::uint32_t row : begins) {
    const Time begin = columns.residencies[row].begin;
    const auto comes_first = [&](Time time) { return clock == MemoryClock::device ? time <= begin : time < begin; };
    for (; end != ends.end() && comes_first(end->first); ++end) changes.push_back(TierChange::end_of(end->second));
    changes.push_back(TierChange::begin_of(row));
  }
  for (; end != ends.end(); ++end) changes.push_back(TierChange::end_of(end->second));
  return changes;
}

// Rows by storage, then begin: counted, for there are millions.
std::vector<std::uint32_t> rows_by_storage(const std::vector<Residency>& residencies, std::size_t storages) {
  std::vector<std::uint32_t> next(storages + 1, 0), rows(residencies.size());
  for (const Residency& residency : residencies) ++next[residency.storage + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  for (std::uint32_t row = 0; row < residencies.size(); ++row) rows[next[residencies[row].storage]++] = row;
  return rows;
}

}  // namespace

std::shared_ptr<const ResidencyHistory> ResidencyHistory::load(const RunSource& source, const LoadProgress& progress) {
  const Run& run = source.outline().run;
  const std::size_t tiers = run.machine.tiers.size();
  const std::shared_ptr<ResidencyHistory> history(new ResidencyHistory);
  history->storages_ = source.storages(part_of(progress, 0, 0.2));
  history->residencies_ = source.residency(part_of(progress, 0.2, 0.5));
  check(history->residencies_, history->storages_.bytes.size(), tiers);
  history->untracked_ = untracked_by_tier(run.machine, run.trace);
  history->untracked_.resize(tiers, 0);
  history->by_storage_ = rows_by_storage(history->residencies_, history->storages_.bytes.size());
  const ResidencyColumns columns{history->storages_, history->residencies_, run.result.end};
  for (std::size_t tier = 0; tier < tiers; ++tier) {
    const double width = 0.5 / static_cast<double>(tiers), low = 0.5 + width * static_cast<double>(tier);
    if (progress && !progress(low)) throw LoadCancelled{};
    std::vector<TierChange> changes = changes_of(columns, static_cast<std::uint8_t>(tier), MemoryClock::host);
    order_instants(columns, source, static_cast<std::uint32_t>(tier), changes, part_of(progress, low, low + width));
    history->tiers_.push_back(
        std::make_shared<const TierChanges>(columns, std::move(changes), history->untracked_[tier]));
  }
  history->end_ = run.result.end;
  if (progress && !progress(1)) throw LoadCancelled{};
  return history;
}

std::shared_ptr<const ResidencyHistory> ResidencyHistory::load_on_device(const RunSource& source,
                                                                         std::vector<Residency> on_device,
                                                                         const LoadProgress& progress) {
  const Run& run = source.outline().run;
  const std::size_t tiers = run.machine.tiers.size();
  const std::shared_ptr<ResidencyHistory> history(new ResidencyHistory);
  history->storages_ = source.storages(part_of(progress, 0, 0.5));
  history->residencies_ = std::move(on_device);
  check(history->residencies_, history->storages_.bytes.size(), tiers);
  history->untracked_ = untracked_by_tier(run.machine, run.trace);
  history->untracked_.resize(tiers, 0);
  history->by_storage_ = rows_by_storage(history->residencies_, history->storages_.bytes.size());
  const ResidencyColumns columns{history->storages_, history->residencies_, run.result.end};
  for (std::size_t tier = 0; tier < tiers; ++tier) {
    reach(progress, 0.5 + 0.5 * static_cast<double>(tier) / static_cast<double>(tiers));
    history->tiers_.push_back(std::make_shared<const TierChanges>(
        columns, changes_of(columns, static_cast<std::uint8_t>(tier), MemoryClock::device), history->untracked_[tier]));
  }
  history->end_ = run.result.end;
  reach(progress, 1);
  return history;
}

KindBytes ResidencyHistory::by_kind(std::uint32_t tier, Time time) const {
  return tiers_[tier]->by_kind({storages_, residencies_, end_}, time);
}

std::vector<KindHigh> ResidencyHistory::highs(std::uint32_t tier, TimeRange range, std::size_t pieces) const {
  return tiers_[tier]->highs({storages_, residencies_, end_}, range, pieces);
}

KindHigh ResidencyHistory::highest(std::uint32_t tier) const {
  return tiers_[tier]->highest({storages_, residencies_, end_});
}

std::vector<std::uint32_t> ResidencyHistory::alive(std::uint32_t tier, Time time) const {
  return tiers_[tier]->alive({storages_, residencies_, end_}, time);
}

std::vector<std::uint32_t> ResidencyHistory::life(StorageId storage) const {
  const auto of = [&](std::uint32_t row) { return residencies_[row].storage; };
  const auto first = std::partition_point(by_storage_.begin(), by_storage_.end(),
                                          [&](std::uint32_t row) { return of(row) < storage; });
  const auto last =
      std::partition_point(first, by_storage_.end(), [&](std::uint32_t row) { return of(row) == storage; });
  return {first, last};
}

std::size_t ResidencyHistory::resident_bytes() const {
  std::size_t bytes = sizeof *this + residencies_.capacity() * sizeof(Residency) +
                      by_storage_.capacity() * sizeof(std::uint32_t) + storages_.bytes.capacity() * sizeof(Bytes) +
                      storages_.kind.capacity() * sizeof(StorageKind) + storages_.label.capacity() * sizeof(StringId) +
                      storages_.preexisting.capacity() / 8;
  for (const auto& tier : tiers_) bytes += tier->resident_bytes();
  return bytes;
}

}  // namespace memwall::gui
