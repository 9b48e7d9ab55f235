#include "models/hw/bus_setting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <machine.pb.h>  // generated from machine.proto

#include <algorithm>

#include "models/hw/quantity.h"
#include "sim/error.h"

namespace memwall {
namespace {

// What copies reach over a x16 slot, page-locked memory, one direction at a time.
struct PcieGeneration {
  const char* name;
  double to_device, to_host;  // GB/s
  const char* source;
};
constexpr PcieGeneration kGenerations[] = {
    {"gen3", 12.35, 12.35,
     "gpu-benches copy sweep, V100 PCIe 3 x16, pinned host to device; the other way assumed alike"},
    {"gen4", 26, 26, "nvbandwidth README, 8-GPU Gen4 node"},
    {"gen5", 55.4, 55.1, "nvbandwidth, pinned copies, eight H200 (ml-engineering)"},
    {"gen6", 110.8, 110.2, "assumption: twice Gen5, as its line rate; no measurement is published"}};

constexpr const char *kPcie = "pcie", *kNvlink = "nvlink";

bool is_of(const std::string& link, const char* bus) { return link.starts_with(bus); }

double rate_on(const std::string& link, const PcieGeneration& generation) {
  return link.find("d2h") != std::string::npos ? generation.to_host : generation.to_device;
}

template <class Crossing>
bool crosses_bus(const Crossing& crossing, const char* bus) {
  return std::any_of(crossing.crosses().begin(), crossing.crosses().end(),
                     [&](const std::string& link) { return is_of(link, bus); });
}

void set_number(schema::Quantity* quantity, std::string value, std::string source) {
  quantity->set_value(std::move(value));
  quantity->set_source(std::move(source));
}

double bytes_per_second(const schema::Quantity& quantity) {
  return parse_quantity(quantity.value(), Dimension::bandwidth);
}

// The slowest of the PCIe links that it crosses.
template <class Crossing>
double slowest(const schema::Machine& machine, const Crossing& crossing) {
  double least = 0;
  for (const auto& link : machine.link()) {
    const auto& names = crossing.crosses();
    if (!is_of(link.name(), kPcie) || std::find(names.begin(), names.end(), link.name()) == names.end()) continue;
    const double rate = bytes_per_second(link.bandwidth());
    least = least == 0 ? rate : std::min(least, rate);
  }
  return least;
}

void scale(schema::Quantity* quantity, double factor, const std::string& setting) {
  set_number(quantity, fmt::format("{:.6g} GB/s", bytes_per_second(*quantity) * factor / 1e9),
             fmt::format("--set {}: {} in proportion to its PCIe links", setting, quantity->value()));
}

// What has a number of its own, in proportion to its links before and now.
void follow_links(const schema::Machine& before, schema::Machine& machine, const std::string& setting) {
  for (auto& fabric : *machine.mutable_fabric()) {
    if (!crosses_bus(fabric, kPcie)) continue;
    const double factor = slowest(machine, fabric) / slowest(before, fabric);
    scale(fabric.mutable_bus_bandwidth(), factor, setting);
    for (auto& collective : *fabric.mutable_collective()) scale(collective.mutable_bus_bandwidth(), factor, setting);
  }
  for (auto& route : *machine.mutable_route())
    if (crosses_bus(route, kPcie) && !route.pageable() && route.has_bandwidth())
      scale(route.mutable_bandwidth(), slowest(machine, route) / slowest(before, route), setting);
}

// A generation by name, or a rate for both directions.
PcieGeneration generation_of(const std::string& value, const std::string& setting) {
  const auto generation = std::find_if(std::begin(kGenerations), std::end(kGenerations),
                                       [&](const PcieGeneration& g) { return g.name == value; });
  if (generation != std::end(kGenerations)) return *generation;
  try {
    const double rate = parse_quantity(value, Dimension::bandwidth) / 1e9;
    if (rate <= 0) throw QuantityError("expected more than 0");
    return {"", rate, rate, "as given, each direction"};
  } catch (const QuantityError& error) {
    throw UsageError(
        fmt::format("--set {}: expected gen3, gen4, gen5 or gen6, of 16 lanes, or a bandwidth (30GB/s): {}. One "
                    "direction alone is set by its link, as in link.pcie_h2d.bandwidth=30GB/s.",
                    setting, error.what()));
  }
}

void set_pcie(schema::Machine& machine, const std::string& value) {
  const std::string setting = fmt::format("pcie={}", value);
  const PcieGeneration generation = generation_of(value, setting);
  const schema::Machine before = machine;
  bool found = false;
  for (auto& link : *machine.mutable_link()) {
    if (!is_of(link.name(), kPcie)) continue;
    found = true;
    set_number(link.mutable_bandwidth(), fmt::format("{} GB/s", rate_on(link.name(), generation)),
               fmt::format("--set {}: {}", setting, generation.source));
  }
  if (!found)
    throw UsageError(fmt::format("--set {}: machine {} has no link whose name begins with \"pcie\"; its links are {}.",
                                 setting, machine.name(), [&] {
                                   std::vector<std::string> names;
                                   for (const auto& link : machine.link()) names.push_back(link.name());
                                   return fmt::format("{}", fmt::join(names, ", "));
                                 }()));
  follow_links(before, machine, setting);
}

// The way of the fabric between the two ends of a copy.
void reroute(schema::Route& route, const schema::Fabric& way, const std::string& setting) {
  route.clear_crosses();
  route.clear_compressed();
  route.clear_efficiency();
  route.add_crosses("hbm");
  for (const std::string& link : way.crosses())
    if (link != "hbm") route.add_crosses(link);
  set_number(route.mutable_bandwidth(), way.bus_bandwidth().value(),
             fmt::format("--set {}: as fabric.{}", setting, way.name()));
}

void set_nvlink(schema::Machine& machine, const std::string& value) {
  const std::string setting = fmt::format("nvlink={}", value);
  if (value != "off")
    throw UsageError(
        fmt::format("--set {}: expected off; another rate is set by its numbers, as in "
                    "link.nvlink_out.bandwidth=150GB/s and fabric.nvlink.bus_bandwidth=135GB/s.",
                    setting));
  const auto& fabrics = machine.fabric();
  if (std::none_of(fabrics.begin(), fabrics.end(), [](const auto& f) { return crosses_bus(f, kNvlink); }))
    throw UsageError(fmt::format("--set {}: machine {} has no fabric over NVLink.", setting, machine.name()));
  const auto other = std::find_if(fabrics.begin(), fabrics.end(),
                                  [](const auto& f) { return crosses_bus(f, kPcie) && !crosses_bus(f, kNvlink); });
  if (other == fabrics.end())
    throw UsageError(fmt::format("--set {}: machine {} has no fabric over PCIe that its GPUs could talk over instead.",
                                 setting, machine.name()));
  for (auto& route : *machine.mutable_route())
    if (crosses_bus(route, kNvlink)) reroute(route, *other, setting);
  for (auto& fabric : *machine.mutable_fabric())
    if (crosses_bus(fabric, kNvlink)) set_number(fabric.mutable_max_ranks(), "1", fmt::format("--set {}", setting));
}

}  // namespace

const std::vector<std::string>& bus_settings() {
  static const std::vector<std::string> kBuses = {kPcie, kNvlink};
  return kBuses;
}

void set_bus(schema::Machine& machine, const std::string& bus, const std::string& value) {
  if (bus == kPcie) return set_pcie(machine, value);
  set_nvlink(machine, value);
}

std::vector<std::string> faster_buses(const std::string& link, double bytes_per_second) {
  std::vector<std::string> settings;
  if (!is_of(link, kPcie)) return settings;
  for (const PcieGeneration& generation : kGenerations)
    if (rate_on(link, generation) * 1e9 > bytes_per_second) settings.push_back(fmt::format("pcie={}", generation.name));
  return settings;
}

}  // namespace memwall
