#include "traces/run/run.h"

#include <algorithm>
#include <tuple>

namespace memwall {
namespace {

struct KindChange {
  Time time{};
  Bytes bytes = 0;  // negative: given back
  StorageKind kind = StorageKind::unknown;
};

std::vector<KindChange> changes_of_tier(const Run& run, int tier) {
  std::vector<KindChange> changes;
  for (const Residency& stay : run.residency) {
    if (stay.tier != tier) continue;
    const Storage& storage = run.trace.storages[stay.storage];
    changes.push_back({stay.begin, storage.bytes, storage.kind});
    if (stay.end < run.result.end) changes.push_back({stay.end, -storage.bytes, storage.kind});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const KindChange& a, const KindChange& b) { return a.time < b.time; });
  return changes;
}

}  // namespace

std::vector<KindPoint> memory_by_kind(const Run& run, int tier) {
  std::vector<KindPoint> points(1);
  if (run.machine.tier("hbm") == tier)
    points.back().by_kind[static_cast<int>(StorageKind::unknown)] = run.trace.untracked_bytes;
  for (const KindChange& change : changes_of_tier(run, tier)) {
    if (points.back().time != change.time) {
      points.push_back(points.back());
      points.back().time = change.time;
    }
    points.back().by_kind[static_cast<int>(change.kind)] += change.bytes;
  }
  return points;
}

std::vector<StepWindow> step_windows(const Run& run) {
  const auto& records = run.result.records;
  if (run.trace.steps.empty()) return {{"all", Time{}, run.result.end}};
  const auto boundary = [&](OpId id) {
    return id < records.size() && records[id].host_start != kNever ? records[id].host_start : run.result.end;
  };
  std::vector<StepWindow> windows;
  for (const Step& step : run.trace.steps)
    windows.push_back({step.name, boundary(step.first), std::max(boundary(step.first), boundary(step.last))});
  return windows;
}

}  // namespace memwall
