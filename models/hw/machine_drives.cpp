#include "models/hw/machine_drives.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/hw/machine_parts.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

bool crosses(const std::vector<std::uint16_t>& links, std::uint16_t link) {
  return std::find(links.begin(), links.end(), link) != links.end();
}

bool carries_only_writes_to(std::size_t tier, std::uint16_t link, const Machine& machine) {
  const auto agrees = [&](const Route& route) { return crosses(route.links, link) == (route.to == tier); };
  return std::all_of(machine.routes.begin(), machine.routes.end(), agrees) &&
         std::none_of(machine.fabrics.begin(), machine.fabrics.end(),
                      [&](const Fabric& fabric) { return crosses(fabric.links, link); });
}

std::int32_t write_link_of(std::size_t tier, const Machine& machine) {
  std::int32_t found = -1;
  const auto first =
      std::find_if(machine.routes.begin(), machine.routes.end(), [&](const Route& route) { return route.to == tier; });
  if (first == machine.routes.end()) return found;
  for (const std::uint16_t link : first->links)
    if (carries_only_writes_to(tier, link, machine)) found = link;
  return found;
}

bool is_written(const Tier& tier, const Machine& machine) {
  return std::any_of(machine.routes.begin(), machine.routes.end(),
                     [&](const Route& route) { return route.to == machine.tier(tier.name); });
}

bool says_anything(const schema::Tier& tier) {
  return tier.has_drives() || tier.has_endurance() || tier.has_write_cache() || tier.has_sustained_write_bandwidth();
}

// Of numbers that stand or fall together.
std::string missing_half(const schema::Tier& tier) {
  const auto without = [&](const char* given, const char* missing, const char* why) {
    return fmt::format("tier \"{}\" has {} without {}; expected both: {}", tier.name(), given, missing, why);
  };
  if (tier.has_endurance() && !tier.has_drives())
    return without("endurance", "drives", "endurance is that of one drive");
  if (tier.has_write_cache() && !tier.has_sustained_write_bandwidth())
    return without("write_cache", "sustained_write_bandwidth", "that is how writes go once the cache is full");
  if (tier.has_sustained_write_bandwidth() && !tier.has_write_cache())
    return without("sustained_write_bandwidth", "write_cache", "that is what drives take before writes fall off");
  return "";
}

std::string contradiction_of(const schema::Tier& from, const Tier& tier, const Machine& machine) {
  if (tier.tier_class != TierClass::storage)
    return fmt::format("tier \"{}\" has drives, endurance or a write cache and is not of class storage", tier.name);
  if (std::string half = missing_half(from); !half.empty()) return half;
  if (from.has_drives() && tier.drives == 0)
    return fmt::format("tier \"{}\" has 0 drives; expected at least 1", tier.name);
  if (from.has_endurance() && tier.endurance == 0)
    return fmt::format("tier \"{}\" has an endurance of 0 B; expected what one drive may be written in its life",
                       tier.name);
  if (tier.write_link < 0) {
    if (!is_written(tier, machine)) return "";
    return fmt::format(
        "what is written to the drives of tier \"{}\" cannot be told from other traffic; expected a link that every "
        "route to it crosses and no other route or fabric does",
        tier.name);
  }
  const Link& link = machine.links[static_cast<std::size_t>(tier.write_link)];
  if (link.sustained > link.bandwidth)
    return fmt::format(
        "tier \"{}\" sustains writes of {}, more than the {} of its link \"{}\"; expected a "
        "sustained_write_bandwidth of at most that",
        tier.name, human_rate(link.sustained), human_rate(link.bandwidth), link.name);
  return "";
}

}  // namespace

void read_drives(const schema::Machine& from, Machine& machine) {
  for (std::size_t t = 0; t < machine.tiers.size(); ++t)
    if (machine.tiers[t].tier_class == TierClass::storage) machine.tiers[t].write_link = write_link_of(t, machine);
  for (const auto& tier : from.tier()) {
    Tier& read = machine.tiers[static_cast<std::size_t>(machine.tier(tier.name()))];
    if (tier.has_drives()) read.drives = count_of(tier.drives());
    if (tier.has_endurance()) read.endurance = size_of(tier.endurance());
    if (read.write_link < 0 || !tier.has_write_cache() || !tier.has_sustained_write_bandwidth()) continue;
    Link& link = machine.links[static_cast<std::size_t>(read.write_link)];
    link.write_cache = size_of(tier.write_cache());
    link.sustained = rate_of(tier.sustained_write_bandwidth());
  }
}

std::string drive_contradiction(const schema::Machine& from, const Machine& machine) {
  for (const auto& tier : from.tier()) {
    if (!says_anything(tier)) continue;
    const Tier& read = machine.tiers[static_cast<std::size_t>(machine.tier(tier.name()))];
    if (std::string problem = contradiction_of(tier, read, machine); !problem.empty()) return problem;
  }
  return "";
}

}  // namespace memwall
