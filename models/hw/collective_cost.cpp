#include "models/hw/collective_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/error.h"

namespace memwall {
namespace {

struct Group {
  CollectiveKind kind;
  double ranks, nodes, ranks_of_node;  // a node: what the next inner fabric reaches
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

CollectiveCost cost_of(const CollectiveModel& model, const Group& g, Bytes bytes) {
  CollectiveCost cost;
  cost.model = model.name;
  cost.residual = model.residual;
  const Steps steps = steps_of(model.algorithm, g);
  const Duration inner = model.inner_steps ? model.inner_step_latency : model.step_latency;
  cost.duration =
      model.base_latency + from_seconds(steps.outer * to_seconds(model.step_latency) + steps.inner * to_seconds(inner));
  const auto message = static_cast<double>(bytes);
  const auto wire = static_cast<double>(std::llround(ring_share(g.kind, g.ranks) * message));
  if (wire <= 0) return cost;
  cost.duration += from_seconds(wire / (model.bus_bandwidth * model.efficiency.at(message)));
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

// How many ranks the fabric inside of this one reaches; 1 where it is the innermost.
double reach_inside(const Machine& machine, const Fabric& fabric) {
  double reach = 1;
  for (const Fabric& inner : machine.fabrics) {
    if (&inner == &fabric) break;
    reach = std::max<double>(reach, inner.max_ranks);
  }
  return reach;
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

CollectiveCost collective_cost(const Machine& machine, CollectiveKind kind, Bytes bytes, std::uint32_t ranks) {
  if (ranks <= 1 || kind == CollectiveKind::none) return {};
  const Fabric* fabric = machine.fabric(ranks);
  if (!fabric) throw UsageError(fmt::format("Machine {} has no fabric that reaches {} ranks.", machine.name, ranks));
  Group group{kind, static_cast<double>(ranks), 0, 0};
  group.ranks_of_node = std::min(group.ranks, reach_inside(machine, *fabric));
  group.nodes = std::ceil(group.ranks / group.ranks_of_node);
  CollectiveCost best;
  bool found = false;
  for (const CollectiveModel& model : fabric->collectives) {
    if (!fits(model, kind, ranks)) continue;
    CollectiveCost cost = cost_of(model, group, bytes);
    if (!found || cost.duration < best.duration) best = std::move(cost);
    found = true;
  }
  return found ? best : cost_of(own_ring(*fabric), group, bytes);
}

}  // namespace memwall
