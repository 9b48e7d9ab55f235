#include "traces/run/analysis/gpu_memory_peaks.h"

#include <algorithm>

namespace memwall {

std::optional<GpuMemoryPeaks> gpu_memory_peaks(const Run& run) {
  std::optional<GpuMemoryPeaks> peaks;
  if (!run.trace->knowledge.allocations) return peaks;
  for (std::size_t t = 0; t < run.machine.tiers.size() && t < run.result.tiers.size(); ++t) {
    if (run.machine.tiers[t].tier_class != TierClass::device) continue;
    const TierResult& tier = run.result.tiers[t];
    if (!peaks) peaks.emplace();
    peaks->allocated = std::max(peaks->allocated, tier.peak_allocated);
    peaks->reserved = std::max(peaks->reserved, tier.peak_reserved);
    peaks->missing = std::max(peaks->missing, tier.missing);
  }
  return peaks;
}

}  // namespace memwall
