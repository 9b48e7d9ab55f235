#include "models/hw/collective_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/hw/nccl_estimate.h"
#include "sim/error.h"

namespace memwall {
namespace {

struct Group {
  CollectiveKind kind;
  double ranks, nodes, ranks_of_node;  // a node: what the nested fabric reaches
  double fewest_of_node = 1;
  double adapters = 1;         // share of a node's that the group has
  double adapter_count = 1;    // of a node
  double adapter_members = 1;  // behind one
  BytesPerSecond inside = 0;   // bus bandwidth of a ring within a node; 0 = no limit
  bool across_nodes = false;
};

// An all-reduce goes through twice: once to add, once to spread.
double passes(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::barrier ? 2 : 1;
}

struct Steps {
  double outer = 0, inner = 0;
};

Steps steps_of(CollectiveAlgorithm algorithm, const Group& g) {
  if (g.kind == CollectiveKind::none) return {};
  if (g.kind == CollectiveKind::send_receive) return {1, 0};
  const double twice = passes(g.kind);
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return {twice * (g.nodes - 1), twice * (g.ranks - g.nodes)};
    case CollectiveAlgorithm::tree:
      return {twice * std::ceil(std::log2(g.nodes)), twice * (g.ranks_of_node - 1)};
    case CollectiveAlgorithm::in_switch:
      return {twice, 0};
  }
  return {};
}

bool can_do(CollectiveAlgorithm algorithm, CollectiveKind kind) {
  const bool all_reduce = kind == CollectiveKind::all_reduce;
  switch (algorithm) {
    case CollectiveAlgorithm::ring:
      return true;
    case CollectiveAlgorithm::tree:
      return all_reduce || kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
    case CollectiveAlgorithm::in_switch:
      return all_reduce || kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather;
  }
  return false;
}

bool fits(const CollectiveModel& model, CollectiveKind kind, std::uint32_t ranks) {
  if (ranks < model.min_ranks || (model.max_ranks != 0 && ranks > model.max_ranks)) return false;
  if (model.kinds.empty()) return can_do(model.algorithm, kind);
  return std::find(model.kinds.begin(), model.kinds.end(), kind) != model.kinds.end();
}

// Where the switch adds, a rank sends its message once, and its part of the result once more for the others. Otherwise
// one direction is as busy as in a ring.
double sent_share(CollectiveAlgorithm algorithm, CollectiveKind kind, double ranks) {
  const bool adds = algorithm == CollectiveAlgorithm::in_switch && kind == CollectiveKind::all_reduce;
  return adds ? (ranks + 1) / ranks : ring_share(kind, ranks);
}

// Seconds that the bytes of one rank take once they flow at `bandwidth`, the fabric's bus bandwidth.
double flow_seconds(const Group& g, double message, double bandwidth) {
  const double wire = std::round(ring_share(g.kind, g.ranks) * message);
  if (!g.across_nodes) return wire / bandwidth;
  const double adapter = bandwidth / g.adapter_count;
  if (g.kind == CollectiveKind::send_receive) return wire / adapter;
  if (g.kind == CollectiveKind::all_to_all) {
    const double out = (g.ranks - g.fewest_of_node) / g.ranks * message;
    const double in = (g.ranks_of_node - 1) / g.ranks * message;
    return std::max(out * g.adapter_members / adapter, g.inside > 0 ? in / g.inside : 0);
  }
  const double shared = bandwidth * g.adapters;
  return wire / (g.inside > 0 ? std::min(shared, g.inside) : shared);
}

// In the switch a rank's port is the limit, whatever the number of ranks: an all-reduce sends (n+1)/n of its message
// there. The bus bandwidth is that of the most ranks, and of fewer in proportion to 2 (n-1)/n by (n+1)/n: 310, 305, 307
// and 304 GB/s through the port of each of 5, 6, 7 and 8 H200 (nccl_collectives_busbw.csv).
double port_share(const CollectiveModel& model, const Group& g) {
  if (model.algorithm != CollectiveAlgorithm::in_switch || g.kind != CollectiveKind::all_reduce || model.max_ranks == 0)
    return 1;
  const double most = model.max_ranks;
  return (g.ranks - 1) / (g.ranks + 1) * (most + 1) / (most - 1);
}

CollectiveCost cost_of(const CollectiveModel& model, const Group& g, Bytes bytes) {
  CollectiveCost cost;
  cost.model = model.name;
  cost.residual = model.residual;
  const Steps steps = steps_of(model.algorithm, g);
  const Duration inner = model.inner_steps ? model.inner_step_latency : model.step_latency;
  cost.duration =
      model.base_latency + from_seconds(steps.outer * to_seconds(model.step_latency) + steps.inner * to_seconds(inner));
  const auto message = static_cast<double>(bytes);
  if (std::llround(ring_share(g.kind, g.ranks) * message) <= 0) return cost;
  cost.duration +=
      from_seconds(flow_seconds(g, message, port_share(model, g) * model.bus_bandwidth * model.efficiency.at(message)));
  cost.sent = static_cast<Bytes>(std::llround(sent_share(model.algorithm, g.kind, g.ranks) * message));
  return cost;
}

CollectiveModel own_ring(const Fabric& fabric) {
  CollectiveModel model;
  model.bus_bandwidth = fabric.bus_bandwidth;
  model.step_latency = fabric.step_latency;
  model.base_latency = fabric.base_latency;
  model.efficiency = fabric.efficiency;
  model.residual = fabric.residual;
  return model;
}

// What a ring, and what an all-reduce in the switch, reaches where the group's messages pass through a node's GPUs.
struct Inside {
  BytesPerSecond ring = 0, in_switch = 0;
};

Inside inside_of(const Machine& machine, const GroupPlace& place, std::size_t fabric) {
  Inside inside;
  const std::size_t inner = nested_in(machine, fabric);
  if (inner == kNoFabric || place.fabrics[inner].members < 2) return inside;
  const Fabric& nested = machine.fabrics[inner];
  inside = inside_of(machine, place, inner);
  const double own = nested.bus_bandwidth * (place.fabrics[inner].domains > 1 ? place.fabrics[inner].adapters : 1);
  inside.ring = inside.ring > 0 ? std::min(inside.ring, own) : own;
  for (const CollectiveModel& model : nested.collectives)
    if (model.algorithm == CollectiveAlgorithm::in_switch && place.fabrics[inner].fewest >= model.min_ranks)
      inside.in_switch = model.bus_bandwidth;
  return inside;
}

Group group_of(const Machine& machine, CollectiveKind kind, const GroupPlace& place, std::size_t fabric) {
  Group group{.kind = kind, .ranks = double(place.ranks), .nodes = double(place.ranks), .ranks_of_node = 1};
  const std::size_t inner = nested_in(machine, fabric);
  if (inner == kNoFabric) return group;
  group.across_nodes = true;
  const FabricPlace& node = place.fabrics[inner];
  group.nodes = node.domains;
  group.ranks_of_node = node.members;
  group.fewest_of_node = node.fewest;
  group.adapters = place.fabrics[fabric].adapters;
  group.adapter_members = place.fabrics[fabric].adapter_members;
  group.adapter_count = adapter_count(machine, fabric);
  group.inside = inside_of(machine, place, fabric).ring;
  return group;
}

// What NCCL's tuner takes for the group's bandwidth, where nothing was measured of the fabric.
std::optional<CollectiveCost> estimated_cost(const Machine& machine, const GroupPlace& place, std::size_t fabric,
                                             const Group& g, Bytes bytes) {
  const Fabric& links = machine.fabrics[fabric];
  if (links.medium == Medium::unknown || !links.efficiency.points.empty()) return std::nullopt;
  NcclTopology topology;
  topology.ranks = place.ranks;
  topology.compute_major = machine.gpu.compute_major;
  topology.inside = links.medium;
  const auto message = static_cast<double>(bytes);
  topology.ring_bandwidth = links.bus_bandwidth;
  if (links.medium == Medium::network) {
    const Inside inside = inside_of(machine, place, fabric);
    const std::size_t inner = nested_in(machine, fabric);
    topology.inside = inner == kNoFabric ? Medium::nvlink : machine.fabrics[inner].medium;
    topology.nodes = static_cast<std::uint32_t>(g.nodes);
    topology.in_switch_bandwidth = inside.in_switch;
    topology.ring_bandwidth *= g.adapters;
    if (g.inside > 0) topology.ring_bandwidth = std::min(topology.ring_bandwidth, g.inside);
  }
  const std::optional<NcclEstimate> choice = nccl_choice(topology, g.kind, message);
  if (!choice) return std::nullopt;
  CollectiveCost cost;
  cost.model = choice->name();
  cost.duration = from_seconds(choice->seconds(message));
  cost.sent = static_cast<Bytes>(std::llround(ring_share(g.kind, g.ranks) * message));
  return cost;
}

}  // namespace

double ring_share(CollectiveKind kind, double ranks) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (ranks - 1) / ranks;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all:
      return (ranks - 1) / ranks;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_receive:
      return 1;
    case CollectiveKind::barrier:
    case CollectiveKind::none:
      return 0;
  }
  return 0;
}

CollectiveCost collective_cost(const Machine& machine, CollectiveKind kind, Bytes bytes, const GroupPlace& place) {
  if (place.ranks <= 1 || kind == CollectiveKind::none) return {};
  const std::size_t index = fabric_of(machine, place);
  if (index == kNoFabric)
    throw UsageError(fmt::format("Machine {} has no fabric that reaches {} ranks.", machine.name, place.ranks));
  const Fabric& fabric = machine.fabrics[index];
  const Group group = group_of(machine, kind, place, index);
  CollectiveCost best;
  bool found = false;
  for (const CollectiveModel& model : fabric.collectives) {
    if (!fits(model, kind, place.ranks)) continue;
    CollectiveCost cost = cost_of(model, group, bytes);
    if (!found || cost.duration < best.duration) best = std::move(cost);
    found = true;
  }
  if (found) return best;
  if (std::optional<CollectiveCost> estimate = estimated_cost(machine, place, index, group, bytes)) return *estimate;
  return cost_of(own_ring(fabric), group, bytes);
}

CollectiveCost collective_cost(const Machine& machine, CollectiveKind kind, Bytes bytes, std::uint32_t ranks) {
  if (ranks <= 1 || kind == CollectiveKind::none) return {};
  return collective_cost(machine, kind, bytes, contiguous_place(machine, ranks));
}

}  // namespace memwall
