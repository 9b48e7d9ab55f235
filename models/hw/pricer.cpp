#include "models/hw/pricer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "models/hw/collective_cost.h"
#include "models/hw/kernel_cost.h"
#include "models/hw/kernel_price_memory.h"
#include "sim/error.h"

namespace memwall {
namespace {

class MachinePricer : public Pricer {
 public:
  explicit MachinePricer(const Machine& machine) : machine_(machine), kernels_(machine_) {}

  using Pricer::kernel;
  Duration kernel(const Op& op, const Shape& shape) const override { return kernels_.price(op, shape); }

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
    return route->latency + countable(size / (route->bandwidth * route->efficiency.at(size)), "copying", bytes,
                                      fmt::format("from \"{}\" to \"{}\"", from, to));
  }

  Duration collective(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) const override {
    if (ranks <= 1) return {};
    return collective(kind, bytes, ProcessGroup{"", ranks, {}});
  }

  Duration collective(CollectiveKind kind, Bytes bytes, const ProcessGroup& group) const override {
    const Duration duration = collective_cost(machine_, kind, bytes, place_of(machine_, group)).duration;
    return countable(to_seconds(duration), "a collective of", bytes, fmt::format("among {} ranks", group.ranks),
                     duration);
  }

  Bytes wire_bytes(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) const override {
    if (ranks <= 1) return 0;
    return machine_.fabric(ranks) ? collective_cost(machine_, kind, bytes, ranks).sent : ring_bytes(kind, bytes, ranks);
  }

  Bytes message_bytes(CollectiveKind kind, Bytes sent, std::uint32_t ranks) const override {
    const double share = ranks > 1 ? ring_share(kind, ranks) : 0;
    return share > 0 ? std::llround(static_cast<double>(sent) / share) : 0;
  }

  Duration host_memory_work(Bytes dram_bytes) const override {
    const double rate = std::min(machine_.host.optimizer_bandwidth, machine_.links[machine_.dram_link].bandwidth);
    return countable(static_cast<double>(dram_bytes) / rate, "working on", dram_bytes, "in the host's memory");
  }

  Duration memory_work(const std::string& name, Bytes bytes, double flops) const override {
    const int index = tier(name);
    const Tier& memory = machine_.tiers[static_cast<std::size_t>(index)];
    const bool near = memory.compute > 0;
    if (!near && (memory.tier_class == TierClass::device || name == "host")) return host_memory_work(bytes);
    const std::optional<Route> work = machine_.work_in(index);
    if (!work)
      throw UsageError(
          fmt::format("Machine {} cannot work in tier \"{}\": it has neither compute nor routes to the host "
                      "and back.",
                      machine_.name, name));
    const double moving = static_cast<double>(bytes) / work->bandwidth;
    return countable(std::max(moving, near ? flops / memory.compute
                                           : static_cast<double>(bytes) / machine_.host.optimizer_bandwidth),
                     "working on", bytes, fmt::format("in \"{}\"", name));
  }

  using Pricer::scaled;
  Duration scaled(const Op& measured, const Shape& old_shape, const Op& changed,
                  const Shape& new_shape) const override {
    // Nothing is known about the old work: the model has no ratio to offer, only its own price.
    if (measured.bytes <= 0 && measured.flops <= 0) return kernel(changed, new_shape);
    const double ratio = to_seconds(kernel(changed, new_shape)) / to_seconds(kernel(measured, old_shape));
    return scaled_time(measured.duration, ratio);
  }

 private:
  // A price that can be added up with others. `exact`: what it is already, in whole picoseconds.
  Duration countable(double seconds, const char* what, Bytes bytes, const std::string& where,
                     std::optional<Duration> exact = {}) const {
    if (seconds <= kLongestSeconds) return exact ? *exact : from_seconds(seconds);
    throw UsageError(fmt::format(
        "Machine {}: {} {} bytes {} takes {:.6g} s; expected at most {:.0f} s for one op, so a bandwidth is too small.",
        machine_.name, what, bytes, where, seconds, kLongestSeconds));
  }

  static Bytes ring_bytes(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) {
    return static_cast<Bytes>(std::llround(ring_share(kind, ranks) * static_cast<double>(bytes)));
  }

  int tier(const std::string& name) const {
    if (const int index = machine_.tier(name); index >= 0) return index;
    std::vector<std::string> known;
    for (const Tier& t : machine_.tiers) known.push_back(t.name);
    const std::string near = nearest_name(name, known);
    throw UsageError(fmt::format("Machine {} has no tier \"{}\"{}; its tiers are {}.", machine_.name, name,
                                 near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), fmt::join(known, ", ")));
  }

  const Machine machine_;
  mutable KernelPriceMemory kernels_;  // remembers, and changes no answer
};

}  // namespace

std::unique_ptr<Pricer> make_pricer(const Machine& machine) { return std::make_unique<MachinePricer>(machine); }

}  // namespace memwall
