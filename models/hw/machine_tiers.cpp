#include "models/hw/machine_tiers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <machine.pb.h>  // generated from machine.proto

#include <algorithm>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr double kMostTensorBytes = 0x1p60;  // of tensors in a tier: sums of a few such are still countable

double compression(const schema::Route& route, const Machine& machine) {
  const auto ratio = [&](const std::string& tier) {
    return machine.tiers[static_cast<std::size_t>(machine.tier(tier))].compression_ratio;
  };
  return std::max(ratio(route.from()), ratio(route.to()));
}

// The link that `duplex` made, if one of its directions is among `links`.
void add_duplexes(const schema::Machine& from, const Machine& machine, std::vector<int>& links) {
  const auto has = [&](const std::string& name) {
    return std::find(links.begin(), links.end(), machine.link(name)) != links.end();
  };
  for (const auto& duplex : from.duplex())
    if (has(duplex.forward()) || has(duplex.backward())) links.push_back(machine.link(duplex.name()));
}

void require_crossed(const schema::Machine& from, const schema::Route& route) {
  for (const std::string& link : route.compressed())
    if (std::find(route.crosses().begin(), route.crosses().end(), link) == route.crosses().end())
      throw InputError(
          fmt::format("Machine {}: route \"{}\" is compressed on link \"{}\", which it does not cross; it crosses {}.",
                      from.name(), route.name(), link, fmt::join(route.crosses(), ", ")));
}

}  // namespace

void limit_host_memory(const schema::Host& from, Tier& tier) {
  if (!from.has_memory_limit()) return;
  const Bytes limit = size_of(from.memory_limit());
  if (limit >= tier.usable()) return;
  tier.capacity = limit;
  tier.unavailable = 0;
}

void read_memory_links(const schema::Machine& from, Machine& machine) {
  machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))].memory_link = machine.hbm_link;
  machine.tiers[static_cast<std::size_t>(machine.tier("host"))].memory_link = machine.dram_link;
  for (const auto& tier : from.tier())
    if (tier.has_memory())
      machine.tiers[static_cast<std::size_t>(machine.tier(tier.name()))].memory_link = machine.link(tier.memory());
}

void read_compressed_links(const schema::Machine& from, Machine& machine) {
  for (int r = 0; r < from.route_size(); ++r) {
    if (from.route(r).compressed().empty()) continue;
    require_crossed(from, from.route(r));
    const double ratio = compression(from.route(r), machine);
    if (ratio == 1) continue;
    Route& route = machine.routes[static_cast<std::size_t>(r)];
    std::vector<int> compressed;
    for (const std::string& link : from.route(r).compressed()) compressed.push_back(machine.link(link));
    add_duplexes(from, machine, compressed);
    for (const std::uint16_t link : route.links)
      route.link_shares.push_back(
          std::find(compressed.begin(), compressed.end(), link) == compressed.end() ? 1 : 1 / ratio);
  }
}

std::string tier_contradiction(const Machine& machine) {
  for (const Tier& tier : machine.tiers) {
    if (tier.compression_ratio < 1)
      return fmt::format("tier \"{}\" has a compression of {}; expected at least 1", tier.name, tier.compression_ratio);
    if (static_cast<double>(tier.capacity) * tier.compression_ratio > kMostTensorBytes)
      return fmt::format("tier \"{}\" with its compression of {} holds more than 2^60 bytes", tier.name,
                         tier.compression_ratio);
  }
  for (const Tier& tier : machine.tiers) {
    if (tier.compute <= 0) continue;
    if (tier.tier_class == TierClass::device)
      return fmt::format(
          "tier \"{}\" has compute and is of class device, whose compute is the GPU's; expected class "
          "host or storage",
          tier.name);
    if (tier.memory_link < 0)
      return fmt::format("tier \"{}\" has compute, but not the link of its memory; expected memory: \"...\"",
                         tier.name);
  }
  return "";
}

}  // namespace memwall
