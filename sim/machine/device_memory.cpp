#include "sim/machine/device_memory.h"

#include "sim/error.h"

namespace memwall {

Bytes device_bytes_for(const Trace& trace, const Machine& machine) {
  const int tier = machine.tier("hbm");
  if (tier < 0) throw UsageError("Machine '" + machine.name + "' has no memory 'hbm', which memory plans are for.");
  return machine.tiers[static_cast<std::size_t>(tier)].holds() - trace.untracked_bytes;
}

}  // namespace memwall
