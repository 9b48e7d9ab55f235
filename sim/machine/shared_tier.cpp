#include "sim/machine/shared_tier.h"

#include <algorithm>

namespace memwall {
namespace {

std::uint32_t sharers_of(const Machine& machine, std::size_t tier) {
  if (const std::int32_t link = machine.tiers[tier].memory_link; link >= 0)
    return machine.links[static_cast<std::size_t>(link)].sharers;
  std::uint32_t most = 1;
  for (const Route& route : machine.routes)
    if (route.from == tier || route.to == tier)
      for (const std::uint16_t link : route.links) most = std::max(most, machine.links[link].sharers);
  return most;
}

}  // namespace

std::uint32_t ranks_in_tier(const Machine& machine, std::size_t tier, std::uint32_t ranks) {
  if (machine.tiers[tier].tier_class == TierClass::device) return 1;
  return std::max(1u, std::min(ranks, sharers_of(machine, tier)));
}

}  // namespace memwall
