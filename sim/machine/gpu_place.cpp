#include "sim/machine/gpu_place.h"

#include <algorithm>
#include <set>

#include "sim/machine/group_place.h"
#include "sim/machine/shared_tier.h"

namespace memwall {
namespace {

// The first fabric in which a smaller one nests.
std::size_t first_between_nodes(const Machine& one) {
  for (std::size_t f = 0; f < one.fabrics.size(); ++f)
    if (nested_in(one, f) != kNoFabric) return f;
  return kNoFabric;
}

std::uint32_t node_size_of(const Machine& one, std::size_t between) {
  const int host = one.tier("host");
  const std::uint32_t served = host < 0 ? 0 : sharers_of_tier(one, static_cast<std::size_t>(host));
  if (served > 0) return served;
  return between == kNoFabric ? 0 : one.fabrics[nested_in(one, between)].max_ranks;
}

bool reaches_more(const Machine& one, std::uint32_t gpus) {
  return std::any_of(one.fabrics.begin(), one.fabrics.end(),
                     [&](const Fabric& fabric) { return fabric.max_ranks == 0 || fabric.max_ranks > gpus; });
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

GpuPlaces::GpuPlaces(const Machine& one) {
  std::size_t between = first_between_nodes(one);
  node_ = node_size_of(one, between);
  if (node_ == 0) return;
  // Fabrics within the node are not what nodes talk over.
  while (between < one.fabrics.size() && one.fabrics[between].max_ranks > 0 && one.fabrics[between].max_ranks <= node_)
    ++between;
  if (between >= one.fabrics.size()) return;
  if (const int adapter = adapter_of(one, between); adapter >= 0) {
    const std::uint32_t sharers = std::max(1u, one.links[static_cast<std::size_t>(adapter)].sharers);
    if (sharers < node_) gpus_of_rail_ = sharers;
  }
  for (const Fabric& fabric : one.fabrics)
    if (fabric.max_ranks > node_ && reaches_more(one, fabric.max_ranks) && (rack_ == 0 || fabric.max_ranks < rack_))
      rack_ = fabric.max_ranks;
}

GpuPlace GpuPlaces::of(std::uint32_t number) const {
  if (node_ == 0) return {.node = 0, .gpu = number};
  GpuPlace place{.node = number / node_, .gpu = number % node_};
  if (gpus_of_rail_ > 0) place.rail = place.gpu / gpus_of_rail_;
  if (rack_ > 0) place.rack = number / rack_;
  return place;
}

std::string GpuPlaces::within_node(std::uint32_t number) const {
  const GpuPlace place = of(number);
  std::string text = "GPU " + std::to_string(place.gpu);
  if (place.rail) text += ", rail " + std::to_string(*place.rail);
  if (place.rack) text += ", rack " + std::to_string(*place.rack);
  return text;
}

std::string GpuPlaces::rank_text(std::uint32_t number) const {
  const std::string rank = "rank " + std::to_string(number);
  return node_ == 0 ? rank : rank + " (node " + std::to_string(of(number).node) + ")";
}

std::string GpuPlaces::group_text(std::span<const std::uint32_t> members) const {
  std::string text = counted(members.size(), "rank");
  if (node_ == 0 || members.empty()) return text;
  std::set<std::uint32_t> nodes, rails, racks;
  for (const std::uint32_t number : members) {
    const GpuPlace place = of(number);
    nodes.insert(place.node);
    if (place.rail) rails.insert(*place.rail);
    if (place.rack) racks.insert(*place.rack);
  }
  if (nodes.size() == 1) return text + " in node " + std::to_string(*nodes.begin());
  text += " over " + counted(nodes.size(), "node");
  if (rails.size() == 1) text += ", rail " + std::to_string(*rails.begin());
  if (rails.size() > 1) text += ", " + counted(rails.size(), "rail");
  if (racks.size() > 1) text += ", " + counted(racks.size(), "rack");
  return text;
}

}  // namespace memwall
