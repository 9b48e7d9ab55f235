#include "study/explain/peak_binding.h"

#include <algorithm>

namespace memwall {
namespace {

Bytes sum_of(const KindPoint& point) {
  Bytes sum = 0;
  for (const Bytes bytes : point.by_kind) sum += bytes;
  return sum;
}

// The last op that the host has begun by then; the others are still to come.
Phase phase_at(const Run& run, Time time) {
  Phase phase = Phase::unknown;
  Time latest{-1};
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    const Time begin = run.result.records[id].host_start;
    if (begin > time || begin < latest) continue;
    latest = begin;
    phase = run.trace->ops[id].phase;
  }
  return phase;
}

PeakWithoutKind without(const std::vector<KindPoint>& points, const KindPoint& peak, std::size_t kind) {
  PeakWithoutKind result{.kind = static_cast<StorageKind>(kind), .at_peak = peak.by_kind[kind]};
  for (const KindPoint& point : points) {
    const Bytes others = sum_of(point) - point.by_kind[kind];
    if (others <= result.peak_without) continue;
    result.peak_without = others;
    result.time = point.time;
    Bytes most = 0;
    for (std::size_t k = 0; k < kStorageKinds; ++k)
      if (k != kind && point.by_kind[k] > most) {
        most = point.by_kind[k];
        result.then = static_cast<StorageKind>(k);
      }
  }
  return result;
}

}  // namespace

PeakBinding peak_binding(const Run& run) {
  PeakBinding binding;
  const int tier = run.machine.tier("hbm");
  if (tier < 0 || !run.trace->knowledge.allocations) return binding;
  const std::vector<KindPoint> points = memory_by_kind(run, tier);
  const auto peak = std::ranges::max_element(points, {}, sum_of);
  if (peak == points.end() || sum_of(*peak) == 0) return binding;
  binding.time = peak->time;
  binding.phase = phase_at(run, peak->time);
  binding.requested = sum_of(*peak);
  for (std::size_t k = 0; k < kStorageKinds; ++k)
    if (peak->by_kind[k] > 0) binding.kinds.push_back(without(points, *peak, k));
  std::ranges::stable_sort(binding.kinds, std::greater{}, &PeakWithoutKind::at_peak);
  return binding;
}

}  // namespace memwall
