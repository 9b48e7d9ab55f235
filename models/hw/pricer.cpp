#include "models/hw/pricer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "models/hw/kernel_cost.h"
#include "sim/error.h"

namespace memwall {
namespace {

// Bytes of a message that each rank sends in a ring, as a multiple of the whole message's size.
double wire_factor(CollectiveKind kind, double ranks) {
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

double ring_steps(CollectiveKind kind, double ranks) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::barrier:
      return 2 * (ranks - 1);
    case CollectiveKind::send_receive:
      return 1;
    case CollectiveKind::none:
      return 0;
    default:
      return ranks - 1;
  }
}

class MachinePricer : public Pricer {
 public:
  explicit MachinePricer(const Machine& machine) : machine_(machine) {}

  using Pricer::kernel;
  Duration kernel(const Op& op, const Shape& shape) const override { return kernel_duration(machine_, op, shape); }

  Spread spread(const Op& op, const Shape& shape) const override {
    if (op.kind == OpKind::kernel || op.kind == OpKind::memset) return {kernel_residual(machine_.gpu, op, shape)};
    return {machine_.price_error(op.kind, op.operator_class)};
  }

  Duration copy(const std::string& from, const std::string& to, Bytes bytes, bool pageable) const override {
    const Route* route = machine_.route(tier(from), tier(to), pageable);
    if (!route)
      throw UsageError(fmt::format("Machine {} has no route from \"{}\" to \"{}\".", machine_.name, from, to));
    const auto size = static_cast<double>(std::max<Bytes>(bytes, 0));
    if (size == 0) return route->latency;
    return route->latency + from_seconds(size / (route->bandwidth * route->efficiency.at(size)));
  }

  Duration collective(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) const override {
    if (ranks <= 1 || kind == CollectiveKind::none) return {};
    const Fabric* fabric = machine_.fabric(ranks);
    if (!fabric) throw UsageError(fmt::format("Machine {} has no fabric that reaches {} ranks.", machine_.name, ranks));
    const double steps = ring_steps(kind, ranks);
    const auto latency = fabric->base_latency + from_seconds(steps * to_seconds(fabric->step_latency));
    const auto wire = static_cast<double>(wire_bytes(kind, bytes, ranks));
    if (wire <= 0) return latency;
    const double share = fabric->efficiency.at(static_cast<double>(bytes));
    return latency + from_seconds(wire / (fabric->bus_bandwidth * share));
  }

  Bytes wire_bytes(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) const override {
    if (ranks <= 1) return 0;
    return static_cast<Bytes>(std::llround(wire_factor(kind, ranks) * static_cast<double>(bytes)));
  }

  Duration host_memory_work(Bytes dram_bytes) const override {
    const double rate = std::min(machine_.host.optimizer_bandwidth, machine_.links[machine_.dram_link].bandwidth);
    return from_seconds(static_cast<double>(dram_bytes) / rate);
  }

  using Pricer::scaled;
  Duration scaled(const Op& measured, const Shape& old_shape, const Op& changed,
                  const Shape& new_shape) const override {
    // Nothing is known about the old work: the model has no ratio to offer, only its own price.
    if (measured.bytes <= 0 && measured.flops <= 0) return kernel(changed, new_shape);
    const double ratio = to_seconds(kernel(changed, new_shape)) / to_seconds(kernel(measured, old_shape));
    return Duration(std::llround(static_cast<double>(measured.duration.count()) * ratio));
  }

 private:
  int tier(const std::string& name) const {
    if (const int index = machine_.tier(name); index >= 0) return index;
    std::vector<std::string> known;
    for (const Tier& t : machine_.tiers) known.push_back(t.name);
    const std::string near = nearest_name(name, known);
    throw UsageError(fmt::format("Machine {} has no tier \"{}\"{}; its tiers are {}.", machine_.name, name,
                                 near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), fmt::join(known, ", ")));
  }

  const Machine machine_;
};

}  // namespace

std::unique_ptr<Pricer> make_pricer(const Machine& machine) { return std::make_unique<MachinePricer>(machine); }

}  // namespace memwall
