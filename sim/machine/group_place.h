// Where the members of a process group sit, and what their traffic crosses.
//
// GPUs are numbered node by node. A fabric that reaches N of them (Fabric::max_ranks) joins runs of N, from 0 on: its
// domains, as the GPUs of one node on NVSwitch or the nodes behind one leaf switch. A group works over the innermost
// fabric that has all of its members in one domain: {0, 1} in a node, {0, 8} over the network, though both are two.
//
// A fabric nests in another one where its own links, the adapters, are no links of GPUs in the smaller domain: what
// leaves a node goes over its adapters, once for all members in it (a ring passes from node to node once). An adapter
// is common to runs of Link::sharers GPUs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// The members of one group in the domains of one fabric.
struct FabricPlace {
  std::uint32_t domains = 1;          // that hold members
  std::uint32_t members = 1;          // of the fullest of them
  std::uint32_t fewest = 1;           // members of the emptiest of them
  double adapters = 1;                // share of a nested domain's adapters that members have, where it is least
  std::uint32_t adapter_members = 1;  // behind the fullest adapter
};

struct GroupPlace {
  std::uint32_t ranks = 1;
  std::vector<FabricPlace> fabrics;  // by index into Machine::fabrics
};

inline constexpr std::size_t kNoFabric = ~std::size_t{0};

// REQUIRES: members ascend and differ.
GroupPlace place_of(const Machine& machine, std::span<const std::uint32_t> members);
// Of ranks 0 to `ranks` - 1.
GroupPlace contiguous_place(const Machine& machine, std::uint32_t ranks);
// Of the members where they are known, else as many from 0 on.
GroupPlace place_of(const Machine& machine, const ProcessGroup& group);

// The innermost fabric with all members in one domain; kNoFabric where none reaches them.
std::size_t fabric_of(const Machine& machine, const GroupPlace& place);

// The fabric that nests in this one: of those that reach fewer GPUs the one that reaches most. kNoFabric where none
// does, or where this fabric crosses no links but theirs (another way to use the same wires).
std::size_t nested_in(const Machine& machine, std::size_t fabric);
// The link that bounds what leaves a nested domain: of those of this fabric alone the one with most sharers; -1: none.
int adapter_of(const Machine& machine, std::size_t fabric);
// Adapters of one nested domain; 1 where nothing nests.
std::uint32_t adapter_count(const Machine& machine, std::size_t fabric);

// Links that one member's traffic crosses, and the share of the bytes that it sends which crosses each.
struct GroupRoute {
  std::vector<std::uint16_t> links;  // indices into Machine::links
  std::vector<double> shares;
};

// Of the member with this number in the job, for a collective of this kind. Empty where no fabric reaches the group.
// The links of an all-to-all carry what goes to members of other domains, from each member over its own adapter; those
// of a send carry all; else a domain's adapters carry one message for all members in it.
GroupRoute route_of(const Machine& machine, const ProcessGroup& group, std::uint32_t number, CollectiveKind kind);

}  // namespace memwall
