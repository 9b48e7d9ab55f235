#include "sim/machine/group_place.h"

#include <algorithm>
#include <cassert>

#include "sim/trace/group_names.h"

namespace memwall {
namespace {

constexpr std::uint32_t kAll = 0xffffffff;

std::uint32_t reach_of(const Fabric& fabric) { return fabric.max_ranks == 0 ? kAll : fabric.max_ranks; }

bool crosses(const Fabric& fabric, std::uint16_t link) {
  return std::find(fabric.links.begin(), fabric.links.end(), link) != fabric.links.end();
}

// Crossed by all of a rank's traffic, whoever its neighbour is.
bool is_memory(const Machine& machine, std::uint16_t link) {
  return link == machine.hbm_link || link == machine.dram_link;
}

// By one of the fabrics before it.
bool is_crossed_inside(const Machine& machine, std::size_t fabric, std::uint16_t link) {
  const auto end = machine.fabrics.begin() + static_cast<std::ptrdiff_t>(fabric);
  return std::any_of(machine.fabrics.begin(), end, [&](const Fabric& inner) { return crosses(inner, link); });
}

// GPUs of the domain that nests in the fabric.
std::uint32_t nested_reach(const Machine& machine, std::size_t fabric) {
  const std::size_t inner = nested_in(machine, fabric);
  return inner == kNoFabric ? 1 : reach_of(machine.fabrics[inner]);
}

std::uint32_t sharers_of(const Machine& machine, int link) {
  return link < 0 ? 1 : std::max(1u, machine.links[static_cast<std::size_t>(link)].sharers);
}

// Counts members by runs of numbers: calls `each(first, last)` with the positions of those in one run.
template <typename Each>
void for_runs(std::span<const std::uint32_t> members, std::uint32_t run, Each each) {
  for (std::size_t first = 0; first < members.size();) {
    std::size_t last = first + 1;
    while (last < members.size() && members[last] / run == members[first] / run) ++last;
    each(first, last);
    first = last;
  }
}

FabricPlace in_fabric(const Machine& machine, std::size_t fabric, std::span<const std::uint32_t> members) {
  FabricPlace place{0, 0, kAll, 1, 1};
  for_runs(members, reach_of(machine.fabrics[fabric]), [&](std::size_t first, std::size_t last) {
    ++place.domains;
    place.members = std::max(place.members, static_cast<std::uint32_t>(last - first));
    place.fewest = std::min(place.fewest, static_cast<std::uint32_t>(last - first));
  });
  if (nested_in(machine, fabric) == kNoFabric) return place;
  const double all = adapter_count(machine, fabric);
  const std::uint32_t sharers = sharers_of(machine, adapter_of(machine, fabric));
  for_runs(members, nested_reach(machine, fabric), [&](std::size_t first, std::size_t last) {
    std::uint32_t used = 0;
    for_runs(members.subspan(first, last - first), sharers, [&](std::size_t from, std::size_t to) {
      ++used;
      place.adapter_members = std::max(place.adapter_members, static_cast<std::uint32_t>(to - from));
    });
    place.adapters = std::min(place.adapters, used / all);
  });
  return place;
}

FabricPlace contiguous_in(const Machine& machine, std::size_t fabric, std::uint32_t ranks) {
  const std::uint32_t reach = reach_of(machine.fabrics[fabric]);
  FabricPlace place;
  place.domains = ranks / reach + (ranks % reach != 0 ? 1 : 0);
  place.members = std::min(ranks, reach);
  place.fewest = ranks > reach && ranks % reach != 0 ? ranks % reach : place.members;
  if (nested_in(machine, fabric) == kNoFabric) return place;
  const std::uint32_t sharers = sharers_of(machine, adapter_of(machine, fabric));
  const std::uint32_t inner = nested_reach(machine, fabric);
  const std::uint32_t rest = ranks <= inner ? ranks : ranks % inner;
  if (rest > 0) place.adapters = std::min(1.0, (rest + sharers - 1) / sharers / double(adapter_count(machine, fabric)));
  place.adapter_members = std::min({ranks, sharers, inner});
  return place;
}

// How many members are in the run of so many numbers that holds `number`; at least itself.
double members_near(const ProcessGroup& group, std::uint32_t number, std::uint32_t run) {
  if (group.members.empty()) return std::max(1u, std::min(group.ranks, run));
  const auto near = [&](std::uint32_t member) { return member / run == number / run; };
  return std::max<double>(1, static_cast<double>(std::count_if(group.members.begin(), group.members.end(), near)));
}

class RouteBuilder {
 public:
  RouteBuilder(const Machine& machine, const ProcessGroup& group, std::uint32_t number, CollectiveKind kind)
      : machine_(machine), group_(group), number_(number), kind_(kind) {}

  // Over a fabric and those that nest in it, while members are left in them.
  GroupRoute build(std::size_t fabric) && {
    double reached = 1;
    while (fabric != kNoFabric) {
      const std::size_t inner = nested_in(machine_, fabric);
      const double near = inner == kNoFabric ? 1 : members_near(group_, number_, reach_of(machine_.fabrics[inner]));
      levels_.push_back({fabric, near, reached});
      if (near <= 1 || kind_ == CollectiveKind::send_receive) break;
      reached = inside_share(near);
      fabric = inner;
    }
    GroupRoute route;
    for (const Level& level : levels_)
      for (const std::uint16_t link : machine_.fabrics[level.fabric].links) {
        if (std::find(route.links.begin(), route.links.end(), link) != route.links.end()) continue;
        const double share = share_of(link, level);
        if (share <= 0) continue;
        route.links.push_back(link);
        route.shares.push_back(share);
      }
    return route;
  }

 private:
  struct Level {
    std::size_t fabric = 0;
    double near = 1;     // members in the domain that nests in it
    double reached = 1;  // share of the traffic that stays within its own domain
  };

  // Of what a member sends, the part that stays with the `near` members of its domain.
  double inside_share(double near) const {
    const double peers = std::max(1.0, group_.ranks - 1.0);
    return kind_ == CollectiveKind::all_to_all ? (near - 1) / peers : (near - 1) / near;
  }

  // `outermost`: of the levels that cross the link.
  double share_of(std::uint16_t link, const Level& outermost) const {
    if (is_memory(machine_, link) || kind_ == CollectiveKind::send_receive) return 1;
    const Level& innermost = *std::find_if(levels_.rbegin(), levels_.rend(), [&](const Level& level) {
      return crosses(machine_.fabrics[level.fabric], link);
    });
    if (kind_ == CollectiveKind::all_to_all)
      return innermost.near > 1 ? outermost.reached - inside_share(innermost.near) : outermost.reached;
    const std::uint32_t run = std::max(sharers_of(machine_, link), nested_reach(machine_, innermost.fabric));
    const double together = members_near(group_, number_, run);
    return together > 1 ? 1 / together : outermost.reached;
  }

  const Machine& machine_;
  const ProcessGroup& group_;
  const std::uint32_t number_;
  const CollectiveKind kind_;
  std::vector<Level> levels_;  // outermost first
};

// Of a job whose ranks all are in such groups: the GPUs between two members work in groups of their own meanwhile, of
// which those behind the same adapter have it in common. REQUIRES: two members or more, which ascend.
void share_adapters(const Machine& machine, std::span<const std::uint32_t> members, GroupPlace& place) {
  std::uint32_t apart = kAll;
  for (std::size_t i = 1; i < members.size(); ++i) apart = std::min(apart, members[i] - members[i - 1]);
  for (std::size_t f = 0; f < place.fabrics.size(); ++f)
    if (nested_in(machine, f) != kNoFabric)
      place.fabrics[f].adapters /= std::min(apart, sharers_of(machine, adapter_of(machine, f)));
}

}  // namespace

int adapter_of(const Machine& machine, std::size_t fabric) {
  int adapter = -1;
  for (const std::uint16_t link : machine.fabrics[fabric].links)
    if (!is_memory(machine, link) && !is_crossed_inside(machine, fabric, link) &&
        (adapter < 0 || sharers_of(machine, link) > sharers_of(machine, adapter)))
      adapter = link;
  return adapter;
}

std::size_t nested_in(const Machine& machine, std::size_t fabric) {
  const std::uint32_t reach = reach_of(machine.fabrics[fabric]);
  std::size_t inner = kNoFabric;
  for (std::size_t f = 0; f < fabric; ++f) {
    const std::uint32_t smaller = reach_of(machine.fabrics[f]);
    if (smaller <= 1 || smaller >= reach) continue;
    if (inner == kNoFabric || smaller > reach_of(machine.fabrics[inner])) inner = f;
  }
  const std::vector<std::uint16_t>& links = machine.fabrics[fabric].links;
  const bool same_wires = !links.empty() && std::all_of(links.begin(), links.end(), [&](std::uint16_t link) {
    return is_memory(machine, link) || is_crossed_inside(machine, fabric, link);
  });
  return same_wires ? kNoFabric : inner;
}

std::uint32_t adapter_count(const Machine& machine, std::size_t fabric) {
  const std::uint32_t sharers = sharers_of(machine, adapter_of(machine, fabric));
  return std::max(1u, (nested_reach(machine, fabric) + sharers - 1) / sharers);
}

GroupPlace place_of(const Machine& machine, std::span<const std::uint32_t> members) {
  assert(std::is_sorted(members.begin(), members.end()));
  GroupPlace place;
  place.ranks = static_cast<std::uint32_t>(members.size());
  for (std::size_t f = 0; f < machine.fabrics.size(); ++f) place.fabrics.push_back(in_fabric(machine, f, members));
  return place;
}

GroupPlace contiguous_place(const Machine& machine, std::uint32_t ranks) {
  GroupPlace place;
  place.ranks = ranks;
  for (std::size_t f = 0; f < machine.fabrics.size(); ++f) place.fabrics.push_back(contiguous_in(machine, f, ranks));
  return place;
}

GroupPlace place_of(const Machine& machine, const ProcessGroup& group) {
  const bool known = group.members.size() > 1 && std::is_sorted(group.members.begin(), group.members.end());
  if (!known) return contiguous_place(machine, group.ranks);
  GroupPlace place = place_of(machine, group.members);
  if (group.name.starts_with(kDataParallelGroup)) share_adapters(machine, group.members, place);
  return place;
}

std::size_t fabric_of(const Machine& machine, const GroupPlace& place) {
  for (std::size_t f = 0; f < machine.fabrics.size(); ++f)
    if (place.fabrics[f].domains <= 1) return f;
  return kNoFabric;
}

GroupRoute route_of(const Machine& machine, const ProcessGroup& group, std::uint32_t number, CollectiveKind kind) {
  if (group.ranks <= 1 && group.members.size() <= 1) return {};
  const std::size_t fabric = fabric_of(machine, place_of(machine, group));
  return RouteBuilder(machine, group, number, kind).build(fabric);
}

}  // namespace memwall
