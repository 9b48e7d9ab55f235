#include "sim/machine/shared_tier.h"

#include <algorithm>

namespace memwall {
namespace {

std::uint32_t sharers_by_links(const Machine& machine, std::size_t tier) {
  if (const std::int32_t link = machine.tiers[tier].memory_link; link >= 0)
    return machine.links[static_cast<std::size_t>(link)].sharers;
  std::uint32_t most = 1;
  for (const Route& route : machine.routes)
    if (route.from == tier || route.to == tier)
      for (const std::uint16_t link : route.links) most = std::max(most, machine.links[link].sharers);
  return most;
}

}  // namespace

std::uint32_t sharers_of_tier(const Machine& machine, std::size_t tier) {
  if (machine.tiers[tier].tier_class == TierClass::device) return 1;
  if (machine.tiers[tier].sharers > 0) return machine.tiers[tier].sharers;
  const std::uint32_t by_links = std::max(1u, sharers_by_links(machine, tier));
  const int host = machine.tier("host");
  const std::uint32_t of_host = host < 0 ? 0 : machine.tiers[static_cast<std::size_t>(host)].sharers;
  return by_links > 1 ? by_links : of_host;
}

std::uint32_t ranks_in_tier(const Machine& machine, std::size_t tier, std::uint32_t ranks) {
  return std::max(1u, std::min(ranks, sharers_of_tier(machine, tier)));
}

}  // namespace memwall
