#include "traces/run/analysis/missing_beside.h"

#include <algorithm>

#include "traces/run/analysis/verdict_advice.h"

namespace memwall {

std::optional<Bytes> missing_beside_allocator(const RunSummary& s) {
  const TierSummary* tier = fullest(s).tier;
  if (!s.fits || !s.memory_recorded || !s.device_memory || tier == nullptr || !tier->name.starts_with("hbm"))
    return std::nullopt;
  const DeviceMemory& memory = *s.device_memory;
  return std::max<Bytes>(0, memory.communication + memory.workspaces - (tier->usable - memory.reserved));
}

}  // namespace memwall
