#include "models/hw/machine_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "models/hw/machine_drives.h"
#include "models/hw/machine_durations.h"
#include "models/hw/machine_parts.h"
#include "models/hw/machine_strings.h"
#include "models/hw/machine_text.h"
#include "models/hw/machine_tiers.h"
#include "models/hw/machine_variants.h"
#include "models/hw/near_machines.h"
#include "models/hw/price_errors.h"
#include "models/hw/quantity.h"
#include "models/hw/storage_cost.h"
#include "sim/error.h"
#include "sim/files/data_folder.h"
#include "sim/files/input_file.h"
#include "sim/lower_case.h"
#include "sim/machine/group_place.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kSuffix = ".textproto";
constexpr std::size_t kLargestFile = 1 << 20;  // a machine file is a few kilobytes

template <class Schema>
void read_tier(const Schema& from, Tier& tier) {
  tier.capacity = size_of(from.capacity());
  if (from.has_unavailable()) tier.unavailable = size_of(from.unavailable());
  if (from.has_compression()) tier.compression_ratio = number_of(from.compression(), Dimension::ratio);
  if (from.has_energy()) tier.picojoules_per_byte = number_of(from.energy(), Dimension::energy_per_byte);
  if (from.has_price()) tier.dollars_per_byte = number_of(from.price(), Dimension::size_price);
}

TierClass tier_class(schema::Tier::Class c) {
  switch (c) {
    case schema::Tier::device:
      return TierClass::device;
    case schema::Tier::host:
      return TierClass::host;
    case schema::Tier::storage:
      return TierClass::storage;
  }
  return TierClass::device;
}

void read_tiers(const schema::Machine& from, Machine& machine) {
  machine.tiers.push_back({.name = "hbm", .tier_class = TierClass::device});
  read_tier(from.gpu().hbm(), machine.tiers.back());
  machine.tiers.push_back({.name = "host", .tier_class = TierClass::host});
  read_tier(from.host().dram(), machine.tiers.back());
  limit_host_memory(from.host(), machine.tiers.back());
  for (const auto& t : from.tier()) {
    machine.tiers.push_back({.name = t.name(), .tier_class = tier_class(t.tier_class())});
    read_tier(t, machine.tiers.back());
    if (t.has_compute()) machine.tiers.back().compute = number_of(t.compute(), Dimension::flop_rate);
  }
}

void read_links(const schema::Machine& from, Machine& machine) {
  const auto& dram = from.host().dram();
  machine.hbm_link = 0;
  machine.links.push_back({.name = "hbm", .bandwidth = rate_of(from.gpu().hbm().bandwidth())});
  machine.dram_link = 1;
  const std::uint32_t numa = std::max(1u, machine.host.numa_nodes);
  const std::uint32_t sharers =
      from.host().has_dram_sharers() ? count_of(from.host().dram_sharers()) : machine.gpu_count;
  machine.tiers[static_cast<std::size_t>(machine.tier("host"))].sharers = sharers;
  machine.links.push_back(
      {.name = "host_dram", .bandwidth = rate_of(dram.bandwidth()) / numa, .sharers = std::max(1u, sharers / numa)});
  for (const auto& l : from.link()) {
    Link link{.name = l.name(), .bandwidth = rate_of(l.bandwidth())};
    if (l.has_sharers()) link.sharers = count_of(l.sharers());
    if (l.has_energy()) link.picojoules_per_byte = number_of(l.energy(), Dimension::energy_per_byte);
    machine.links.push_back(link);
  }
}

std::vector<std::uint16_t> link_indices(const google::protobuf::RepeatedPtrField<std::string>& names,
                                        const Machine& machine) {
  std::vector<std::uint16_t> indices;
  for (const std::string& name : names) indices.push_back(static_cast<std::uint16_t>(machine.link(name)));
  return indices;
}

bool crosses(const std::vector<std::uint16_t>& links, int link) {
  return std::find(links.begin(), links.end(), link) != links.end();
}

// Under load from both sides each direction keeps its share of a one-way bandwidth: the further
// link carries f1*b1 + f2*b2, and weights f1*b1, f2*b2 make max-min fairness split it so.
void add_duplex(const schema::Duplex& duplex, Machine& machine) {
  const int forward = machine.link(duplex.forward()), backward = machine.link(duplex.backward());
  const double f1 = share_of(duplex.forward_share()), f2 = share_of(duplex.backward_share());
  const double b1 = machine.links[static_cast<std::size_t>(forward)].bandwidth;
  const double b2 = machine.links[static_cast<std::size_t>(backward)].bandwidth;
  const auto index = static_cast<std::uint16_t>(machine.links.size());
  const std::uint32_t sharers = machine.links[static_cast<std::size_t>(forward)].sharers;
  machine.links.push_back({.name = duplex.name(), .bandwidth = f1 * b1 + f2 * b2, .sharers = sharers});
  for (Route& route : machine.routes) {
    const bool f = crosses(route.links, forward), b = crosses(route.links, backward);
    if (!f && !b) continue;
    route.links.push_back(index);
    route.weight = f ? f1 : f2 * b2 / b1;
  }
  for (Fabric& fabric : machine.fabrics)
    if (crosses(fabric.links, forward) || crosses(fabric.links, backward)) fabric.links.push_back(index);
}

void read_routes(const schema::Machine& from, Machine& machine) {
  for (const auto& r : from.route()) {
    Route route;
    route.name = r.name();
    route.from = static_cast<std::uint8_t>(machine.tier(r.from()));
    route.to = static_cast<std::uint8_t>(machine.tier(r.to()));
    route.pageable = r.pageable();
    route.engine = static_cast<std::uint8_t>(r.engine());
    route.links = link_indices(r.crosses(), machine);
    route.latency = time_of(r.latency());
    route.bandwidth = r.has_bandwidth() ? rate_of(r.bandwidth()) : std::numeric_limits<double>::infinity();
    if (r.has_bandwidth()) route.stated = route.bandwidth;
    route.efficiency = parse_curve(r.efficiency());
    if (r.has_requests()) route.requests = read_requests(r.requests());
    machine.routes.push_back(route);
  }
}

void read_fabrics(const schema::Machine& from, Machine& machine) {
  for (const auto& f : from.fabric()) {
    Fabric fabric;
    fabric.name = f.name();
    fabric.links = link_indices(f.crosses(), machine);
    fabric.bus_bandwidth = rate_of(f.bus_bandwidth());
    fabric.step_latency = time_of(f.step_latency());
    fabric.base_latency = time_of(f.base_latency());
    if (f.has_max_ranks()) fabric.max_ranks = count_of(f.max_ranks());
    fabric.efficiency = parse_curve(f.efficiency());
    if (f.has_residual()) fabric.residual = share_of(f.residual());
    if (f.has_medium()) fabric.medium = static_cast<Medium>(f.medium());
    for (const auto& c : f.collective()) fabric.collectives.push_back(read_collective(c));
    machine.fabrics.push_back(fabric);
  }
}

// A rank sends its whole message and a share of the result, where a ring sends it twice: up to twice the bus bandwidth.
constexpr double kInSwitch = 2;

void cap_fabric(Fabric& fabric, BytesPerSecond link) {
  fabric.bus_bandwidth = std::min(fabric.bus_bandwidth, link);
  for (CollectiveModel& model : fabric.collectives) {
    const double most = model.algorithm == CollectiveAlgorithm::in_switch ? kInSwitch * link : link;
    model.bus_bandwidth = std::min(model.bus_bandwidth, most);
  }
}

// How many links like this one lead out of what a fabric joins: a group of several nodes goes over all adapters of
// each.
std::uint32_t links_of_node(const Machine& machine, std::size_t fabric, std::uint16_t link) {
  const std::size_t inner = nested_in(machine, fabric);
  if (inner == kNoFabric || link == machine.hbm_link || link == machine.dram_link) return 1;
  return std::max(1u, machine.fabrics[inner].max_ranks / std::max(1u, machine.links[link].sharers));
}

// No transfer is faster than the slowest link that it crosses, or than its requests allow.
void cap_routes(Machine& machine) {
  for (Route& route : machine.routes) {
    route.bandwidth = std::min(route.bandwidth, request_bandwidth(route.requests));
    for (const std::uint16_t link : route.links)
      route.bandwidth = std::min(route.bandwidth, machine.links[link].bandwidth / route.share_of(link));
  }
  for (std::size_t f = 0; f < machine.fabrics.size(); ++f)
    for (const std::uint16_t link : machine.fabrics[f].links)
      cap_fabric(machine.fabrics[f], machine.links[link].bandwidth * links_of_node(machine, f, link));
}

// What no single number shows. "" if the machine hangs together.
std::string contradiction(const schema::Machine& from, const Machine& machine) {
  if (machine.tiers.size() > 100 || machine.links.size() > 1000) return "it has more than 100 tiers or 1000 links";
  if (machine.host.numa_nodes == 0) return "host.numa_nodes must be at least 1";
  if (machine.gpu_count == 0 || machine.gpu.multiprocessors == 0 || machine.gpu.threads_per_multiprocessor == 0)
    return "gpu_count, gpu.multiprocessors and gpu.threads_per_multiprocessor must be at least 1";
  // No comparison with the whole GPU: an override makes that smaller, and the profiles stay what they are.
  for (const MigProfile& p : machine.gpu.mig_profiles)
    if (p.memory <= 0 || p.multiprocessors == 0 || p.compute_slices == 0 || p.memory_slices == 0)
      return fmt::format("MIG profile \"{}\" must have at least 1 byte, 1 multiprocessor and 1 slice of either kind",
                         p.name);
  std::set<std::string> names;
  for (const Tier& tier : machine.tiers) {
    if (!names.insert(tier.name).second) return fmt::format("two tiers are called \"{}\"", tier.name);
    if (tier.unavailable > tier.capacity)
      return fmt::format("of tier \"{}\" {} bytes are unavailable, but its capacity is {}", tier.name, tier.unavailable,
                         tier.capacity);
  }
  names.clear();
  for (const Link& link : machine.links) {
    if (!names.insert(link.name).second) return fmt::format("two links are called \"{}\"", link.name);
    if (link.sharers == 0) return fmt::format("link \"{}\" has 0 sharers; expected at least 1", link.name);
  }
  if (const std::string problem = tier_contradiction(machine); !problem.empty()) return problem;
  if (const std::string problem = drive_contradiction(from, machine); !problem.empty()) return problem;
  return negative_duration(machine);
}

Machine build(const schema::Machine& from) {
  Machine machine;
  machine.name = from.name();
  machine.description = from.description();
  machine.gpu_count = count_of(from.gpu_count());
  machine.gpu = read_gpu(from.gpu());
  machine.host = read_host(from.host());
  read_tiers(from, machine);
  read_links(from, machine);
  read_memory_links(from, machine);
  read_routes(from, machine);
  read_fabrics(from, machine);
  for (const auto& d : from.duplex()) add_duplex(d, machine);
  read_compressed_links(from, machine);
  read_drives(from, machine);
  cap_routes(machine);
  machine.price_errors = price_errors_of(machine);
  if (from.has_price()) machine.dollars_per_hour = number_of(from.price(), Dimension::price_rate);
  if (from.has_power()) machine.watts = number_of(from.power(), Dimension::power);
  if (from.host().has_power()) machine.host.watts = parse_quantity(from.host().power().value(), Dimension::power);
  if (from.has_idle_power()) machine.idle_watts = number_of(from.idle_power(), Dimension::power);
  return machine;
}

fs::path file_of_machine(const std::string& name) { return machine_folder() / (name + std::string(kSuffix)); }

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(machine_folder(), error))
    if (entry.path().extension() == kSuffix) names.push_back(entry.path().stem().string());
  if (error)
    throw InputError(fmt::format("The folder of machine files {} cannot be read: {}. MEMWALL_MACHINES names another.",
                                 machine_folder().string(), error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find_file(const std::string& name_or_path) {
  if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(kSuffix)) return name_or_path;
  const std::vector<std::string> known = machine_names();
  if (std::find(known.begin(), known.end(), name_or_path) == known.end()) {
    const std::vector<std::string> near = near_machines(name_or_path, known);
    throw UsageError(fmt::format(
        "There is no machine \"{}\"{}; `memwall machines` lists all {}, or give the path of a {} file.", name_or_path,
        near.empty() ? "" : fmt::format(" (nearest: \"{}\")", fmt::join(near, "\", \"")), known.size(), kSuffix));
  }
  return file_of_machine(name_or_path);
}

std::string read_machine_file(const fs::path& path) { return content_of_file(path, kLargestFile, "a machine file"); }

// The machine under the name that finds it: a copied file may still have another's inside.
Machine load_named(const std::string& name) {
  Machine machine = load_machine(name);
  machine.name = name;
  return machine;
}

// The machines of the folder whose files hold the text anywhere, in the order of names.
std::vector<Machine> machines_that_say(std::string_view text) {
  std::vector<Machine> machines;
  for (const std::string& name : machine_names()) {
    try {
      if (may_hold_text(read_machine_file(file_of_machine(name)), text)) machines.push_back(load_named(name));
    } catch (const InputError&) {  // damaged: passed over
    }
  }
  return machines;
}

}  // namespace

namespace {

// One level: a base is a whole machine, so that what a file says is found in two files and no circle is possible.
schema::Machine base_machine(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(kSuffix))
    throw UsageError(
        fmt::format("base \"{}\" is a path; expected the name of a machine, as --machine takes it.", name));
  const fs::path path = find_file(name);
  const auto refuse = [&](const std::string& inner) -> schema::Machine {
    throw InputError(
        fmt::format("{}: it has a base of its own, \"{}\"; expected a whole machine as the base of another.",
                    path.filename().string(), inner));
  };
  return MachineText(path.filename().string(), read_machine_file(path), refuse).machine();
}

}  // namespace

MachineText read_machine_text(const std::string& name_or_path, const std::vector<std::string>& settings) {
  const fs::path path = find_file(name_or_path);
  const bool shipped = path.parent_path() == machine_folder();
  MachineText text(shipped ? path.filename().string() : path.string(), read_machine_file(path), base_machine);
  for (const std::string& setting : settings) text.set(setting);
  return text;
}

Machine load_machine(const std::string& name_or_path, const std::vector<std::string>& settings) {
  return MachineVariants(name_or_path).with(settings);
}

MachineVariants::MachineVariants(const std::string& name_or_path)
    : name_(name_or_path), text_(std::make_shared<const MachineText>(read_machine_text(name_or_path, {}))) {}

Machine MachineVariants::with(const std::vector<std::string>& settings) const {
  MachineText text = *text_;
  for (const std::string& setting : settings) text.set(setting);
  const Machine machine = build(text.machine());
  const std::string problem = contradiction(text.machine(), machine);
  if (problem.empty()) return machine;
  if (!settings.empty())
    throw UsageError(fmt::format("--set: machine {} makes no sense then: {}.", machine.name, problem));
  throw InputError(fmt::format("{}: {}.", name_, problem));
}

Machine parse_machine(const std::string& text, const std::string& name) {
  const MachineText read(name, text, base_machine);
  const Machine machine = build(read.machine());
  if (const std::string problem = contradiction(read.machine(), machine); !problem.empty())
    throw InputError(fmt::format("{}: {}.", name, problem));
  return machine;
}

std::vector<MachineNumber> machine_numbers(const std::string& name_or_path, const std::vector<std::string>& settings) {
  return read_machine_text(name_or_path, settings).numbers();
}

std::vector<MachineSummary> list_machines(std::vector<std::string>* damaged) {
  std::vector<MachineSummary> machines;
  for (const Machine& machine : sound_machines(damaged)) machines.push_back({machine.name, machine.description});
  return machines;
}

std::vector<Machine> sound_machines(std::vector<std::string>* damaged) {
  std::vector<Machine> machines;
  for (const std::string& name : machine_names()) {
    try {
      machines.push_back(load_named(name));
    } catch (const InputError& error) {
      if (damaged) damaged->push_back(error.what());
    }
  }
  return machines;
}

std::vector<Machine> whole_machines() {
  std::vector<Machine> machines = sound_machines(nullptr);
  std::erase_if(machines, [](const Machine& machine) {
    const std::string text = read_machine_file(file_of_machine(machine.name));
    return text.starts_with("base:") || text.find("\nbase:") != std::string::npos;
  });
  return machines;
}

bool has_machine(const std::string& name) {
  const std::vector<std::string> names = machine_names();
  if (!std::binary_search(names.begin(), names.end(), name)) return false;
  try {
    load_machine(name);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

std::string machine_for_device(const std::string& device_name, Bytes total_memory) {
  std::string best;
  double best_difference = 0.1;  // drivers keep a few percent back; another variant differs by more
  for (const Machine& machine : machines_that_say(device_name)) {
    const auto& aliases = machine.gpu.aliases;
    const bool listed = std::find(aliases.begin(), aliases.end(), device_name) != aliases.end();
    if (machine.gpu.name != device_name && !listed) continue;
    const auto capacity = static_cast<double>(machine.tiers.front().capacity);
    const double difference = total_memory > 0 ? std::abs(static_cast<double>(total_memory) - capacity) / capacity : 0;
    if (difference > best_difference || (!best.empty() && difference == best_difference)) continue;
    best = machine.name;
    best_difference = difference;
  }
  return best;
}

fs::path machine_folder() { return data_folder("MEMWALL_MACHINES", "machines", MEMWALL_MACHINE_DIR); }

}  // namespace memwall
