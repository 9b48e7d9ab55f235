#include "tests/support/test_machine.h"

#include <algorithm>
#include <string>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr double kGB = 1e9;
constexpr Bytes kGigabyte = 1'000'000'000;

enum : std::uint8_t { kHbm, kHost, kNvme, kPeer };
enum : std::uint16_t { kHbmLink, kDram, kPcieIn, kPcieOut, kNvlinkOut, kNvlinkIn, kNvmeRead, kNvmeWrite };

void add_tier(Machine& machine, const char* name, TierClass tier_class, Bytes capacity) {
  Tier tier;
  tier.name = name;
  tier.tier_class = tier_class;
  tier.capacity = capacity;
  machine.tiers.push_back(tier);
}

void add_link(Machine& machine, const char* name, double bandwidth) {
  Link link;
  link.name = name;
  link.bandwidth = bandwidth;
  machine.links.push_back(link);
}

void add_route(Machine& machine, std::uint8_t from, std::uint8_t to, std::uint8_t engine, double bandwidth,
               std::vector<std::uint16_t> links, bool pageable = false) {
  Route route;
  route.from = from;
  route.to = to;
  route.engine = engine;
  route.bandwidth = bandwidth;
  route.links = std::move(links);
  route.pageable = pageable;
  machine.routes.push_back(route);
}

void add_fabric(Machine& machine, const char* name, double bandwidth, std::uint32_t ranks,
                std::vector<std::uint16_t> links) {
  Fabric fabric;
  fabric.name = name;
  fabric.bus_bandwidth = bandwidth;
  fabric.max_ranks = ranks;
  fabric.links = std::move(links);
  machine.fabrics.push_back(fabric);
}

void add_gpu(Machine& machine) {
  machine.gpu.name = "Test GPU";
  machine.gpu.multiprocessors = 100;
  for (const DataType type : {DataType::fp32, DataType::tf32, DataType::fp16, DataType::bf16})
    machine.gpu.peaks.push_back({type, 100e12});
  machine.host.cores = 16;
  machine.host.optimizer_bandwidth = 100 * kGB;
}

// Everything but the way to the peer.
Machine base_machine(const char* name, const char* description) {
  Machine machine;
  machine.name = name;
  machine.description = description;
  machine.gpu_count = 8;
  add_gpu(machine);
  add_tier(machine, "hbm", TierClass::device, 80 * kGigabyte);
  add_tier(machine, "host", TierClass::host, 1000 * kGigabyte);
  add_tier(machine, "nvme", TierClass::storage, 10'000 * kGigabyte);
  add_tier(machine, "peer_hbm", TierClass::device, 80 * kGigabyte);
  add_link(machine, "hbm", 1000 * kGB);
  add_link(machine, "host_dram", 200 * kGB);
  add_link(machine, "pcie_h2d", 10 * kGB);
  add_link(machine, "pcie_d2h", 10 * kGB);
  add_link(machine, "nvlink_out", 100 * kGB);
  add_link(machine, "nvlink_in", 100 * kGB);
  add_link(machine, "nvme_read", 4 * kGB);
  add_link(machine, "nvme_write", 2 * kGB);
  machine.hbm_link = kHbmLink;
  machine.dram_link = kDram;
  add_route(machine, kHost, kHbm, 0, 10 * kGB, {kPcieIn, kDram});
  add_route(machine, kHost, kHbm, 0, 5 * kGB, {kPcieIn, kDram}, true);
  add_route(machine, kHbm, kHost, 1, 10 * kGB, {kPcieOut, kDram});
  add_route(machine, kHbm, kHost, 1, 5 * kGB, {kPcieOut, kDram}, true);
  add_route(machine, kNvme, kHost, 3, 4 * kGB, {kNvmeRead, kDram});
  add_route(machine, kHost, kNvme, 4, 2 * kGB, {kNvmeWrite, kDram});
  add_route(machine, kHbm, kHbm, 5, 500 * kGB, {kHbmLink});
  return machine;
}

class ClosedFormPricer : public Pricer {
 public:
  explicit ClosedFormPricer(const Machine& machine) : machine_(machine) {}

  Duration kernel(const Op& op, const Shape&) const override {
    return from_seconds(kernel_seconds(op.bytes, op.flops));
  }

  Duration copy(const std::string& from, const std::string& to, Bytes bytes, bool pageable) const override {
    const Route* route = machine_.route(machine_.tier(from), machine_.tier(to), pageable);
    if (!route) throw UsageError("Machine '" + machine_.name + "' has no route from " + from + " to " + to + ".");
    return route->latency + from_seconds(static_cast<double>(bytes) / route->bandwidth);
  }

  Duration collective(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) const override {
    const Fabric* fabric = machine_.fabric(ranks);
    if (!fabric) throw UsageError("Machine '" + machine_.name + "' has no fabric for so many ranks.");
    return from_seconds(static_cast<double>(wire_bytes(kind, bytes, ranks)) / fabric->bus_bandwidth);
  }

  Bytes wire_bytes(CollectiveKind kind, Bytes bytes, std::uint32_t ranks) const override {
    if (ranks <= 1) return 0;
    const Bytes others = bytes / ranks * (ranks - 1);
    return kind == CollectiveKind::all_reduce ? 2 * others : others;
  }

  Duration host_memory_work(Bytes dram_bytes) const override {
    return from_seconds(static_cast<double>(dram_bytes) / machine_.host.optimizer_bandwidth);
  }

  Duration scaled(const Op& measured, const Shape&, const Op& changed, const Shape&) const override {
    const double before = kernel_seconds(measured.bytes, measured.flops);
    if (before <= 0) return measured.duration;
    return from_seconds(to_seconds(measured.duration) * kernel_seconds(changed.bytes, changed.flops) / before);
  }

 private:
  double kernel_seconds(Bytes bytes, double flops) const {
    return std::max(flops / machine_.gpu.peaks.front().flops,
                    static_cast<double>(bytes) / machine_.links[machine_.hbm_link].bandwidth);
  }

  const Machine& machine_;
};

}  // namespace

Machine test_machine() {
  Machine machine = base_machine("test-nvlink", "Round numbers, with NVLink to the peer.");
  add_route(machine, kHbm, kPeer, 2, 100 * kGB, {kNvlinkOut});
  add_route(machine, kPeer, kHbm, 2, 100 * kGB, {kNvlinkIn});
  add_fabric(machine, "nvlink", 100 * kGB, 8, {kNvlinkOut, kNvlinkIn});
  add_fabric(machine, "network", 10 * kGB, 0, {});
  return machine;
}

Machine test_machine_without_nvlink() {
  Machine machine = base_machine("test-pcie", "Round numbers, the peer behind PCIe.");
  add_route(machine, kHbm, kPeer, 2, 10 * kGB, {kPcieOut});
  add_route(machine, kPeer, kHbm, 2, 10 * kGB, {kPcieIn});
  add_fabric(machine, "pcie", 10 * kGB, 8, {kPcieOut, kPcieIn});
  add_fabric(machine, "network", 10 * kGB, 0, {});
  return machine;
}

std::unique_ptr<Pricer> test_pricer(const Machine& machine) { return std::make_unique<ClosedFormPricer>(machine); }

}  // namespace memwall
