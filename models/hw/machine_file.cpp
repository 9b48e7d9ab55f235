#include "models/hw/machine_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "models/hw/machine_durations.h"
#include "models/hw/machine_text.h"
#include "models/hw/price_errors.h"
#include "models/hw/quantity.h"
#include "sim/error.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kSuffix = ".textproto";
constexpr std::uintmax_t kLargestFile = 1 << 20;  // a machine file is a few kilobytes

// The checks of MachineText have passed: what is read here is there and well formed.
double number(const schema::Quantity& q, Dimension d) { return parse_quantity(q.value(), d); }
Bytes size(const schema::Quantity& q) { return static_cast<Bytes>(std::llround(number(q, Dimension::size))); }
double rate(const schema::Quantity& q) { return number(q, Dimension::bandwidth); }
Duration time(const schema::Quantity& q) { return from_seconds(number(q, Dimension::time)); }
double share(const schema::Quantity& q) { return number(q, Dimension::share); }
std::uint32_t count(const schema::Quantity& q) { return static_cast<std::uint32_t>(number(q, Dimension::count)); }

template <class Schema>
void read_tier(const Schema& from, Tier& tier) {
  tier.capacity = size(from.capacity());
  if (from.has_unavailable()) tier.unavailable = size(from.unavailable());
  if (from.has_compression()) tier.compression_ratio = number(from.compression(), Dimension::ratio);
  if (from.has_energy()) tier.picojoules_per_byte = number(from.energy(), Dimension::energy_per_byte);
  if (from.has_price()) tier.dollars_per_byte = number(from.price(), Dimension::size_price);
}

DataType data_type(schema::Peak::DataType t) {
  switch (t) {
    case schema::Peak::fp64:
      return DataType::fp64;
    case schema::Peak::fp32:
      return DataType::fp32;
    case schema::Peak::tf32:
      return DataType::tf32;
    case schema::Peak::fp16:
      return DataType::fp16;
    case schema::Peak::bf16:
      return DataType::bf16;
    case schema::Peak::fp8:
      return DataType::fp8;
    case schema::Peak::int8:
      return DataType::int8;
  }
  return DataType::unknown;
}

KernelEfficiency read_efficiency(const schema::Efficiency& from) {
  KernelEfficiency e;
  // The schema's enum repeats OperatorClass value by value; machine_file_test.cpp holds them together.
  e.operator_class = static_cast<OperatorClass>(from.operator_class());
  e.compute = share(from.compute_share());
  e.memory = share(from.memory_share());
  e.fixed = time(from.fixed());
  if (from.has_backward_share()) e.backward_memory = share(from.backward_share());
  e.width = parse_curve(from.width());
  if (from.has_residual()) e.residual = share(from.residual());
  return e;
}

MatrixUnits read_matrix(const schema::MatrixUnits& from) {
  MatrixUnits matrix;
  for (const auto& loop : from.main_loop())
    matrix.main_loops.push_back({data_type(loop.data_type()), share(loop.share())});
  matrix.convolution = share(from.convolution_share());
  if (from.has_convolution_backward_share()) matrix.convolution_backward = share(from.convolution_backward_share());
  matrix.start_up = time(from.start_up());
  matrix.alignment = parse_curve(from.alignment());
  if (from.has_residual()) matrix.residual = share(from.residual());
  return matrix;
}

AttentionCost read_attention(const schema::Attention& from) {
  return {parse_curve(from.forward()), number(from.backward_ratio(), Dimension::ratio),
          number(from.start_up_keys(), Dimension::count), number(from.causal_start_up_keys(), Dimension::count),
          from.has_residual() ? share(from.residual()) : 0};
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

Gpu read_gpu(const schema::Gpu& from) {
  Gpu gpu;
  gpu.name = from.name();
  gpu.aliases.assign(from.alias().begin(), from.alias().end());
  gpu.compute_major = static_cast<int>(count(from.compute_major()));
  gpu.compute_minor = static_cast<int>(count(from.compute_minor()));
  gpu.multiprocessors = count(from.multiprocessors());
  gpu.threads_per_multiprocessor = count(from.threads_per_multiprocessor());
  gpu.l2_bytes = size(from.l2_capacity());
  gpu.l2_bandwidth = rate(from.l2_bandwidth());
  if (from.has_collective_multiprocessors()) gpu.collective_multiprocessors = count(from.collective_multiprocessors());
  for (const auto& p : from.peak())
    gpu.peaks.push_back({data_type(p.data_type()), number(p.rate(), Dimension::flop_rate)});
  for (const auto& e : from.efficiency()) gpu.efficiencies.push_back(read_efficiency(e));
  if (from.has_matrix()) gpu.matrix = read_matrix(from.matrix());
  if (from.has_attention()) gpu.attention = read_attention(from.attention());
  if (from.has_residency()) {
    gpu.l2_kept = number(from.residency().kept(), Dimension::ratio);
    gpu.l2_lost = number(from.residency().lost(), Dimension::ratio);
    gpu.l2_streaming = share(from.residency().streaming_share());
  }
  for (const auto& p : from.mig_profile())
    gpu.mig_profiles.push_back({p.name(), size(p.memory()), count(p.multiprocessors()), count(p.compute_slices()),
                                count(p.memory_slices()), count(p.count())});
  return gpu;
}

HostCosts read_host(const schema::Host& from) {
  HostCosts host;
  host.cores = count(from.cores());
  host.optimizer_bandwidth = rate(from.optimizer_bandwidth());
  const schema::Calls& calls = from.calls();
  host.launch = time(calls.launch());
  host.launch_latency = time(calls.launch_latency());
  host.stream_gap = time(calls.stream_gap());
  host.copy_call = time(calls.copy());
  host.event_call = time(calls.event());
  host.allocator_call = time(calls.allocator());
  host.device_malloc = time(calls.device_malloc());
  host.device_free = time(calls.device_free());
  host.synchronize_return = time(calls.synchronize_return());
  if (calls.has_framework()) {
    host.eager_forward = time(calls.framework().eager_forward());
    host.eager_backward = time(calls.framework().eager_backward());
    host.eager_optimizer = time(calls.framework().eager_optimizer());
    host.compiled_call = time(calls.framework().compiled_call());
    if (calls.framework().has_residual()) host.framework_residual = share(calls.framework().residual());
  }
  return host;
}

void read_tiers(const schema::Machine& from, Machine& machine) {
  machine.tiers.push_back({.name = "hbm", .tier_class = TierClass::device});
  read_tier(from.gpu().hbm(), machine.tiers.back());
  machine.tiers.push_back({.name = "host", .tier_class = TierClass::host});
  read_tier(from.host().dram(), machine.tiers.back());
  for (const auto& t : from.tier()) {
    machine.tiers.push_back({.name = t.name(), .tier_class = tier_class(t.tier_class())});
    read_tier(t, machine.tiers.back());
    if (t.has_compute()) machine.tiers.back().compute = number(t.compute(), Dimension::flop_rate);
  }
}

void read_links(const schema::Machine& from, Machine& machine) {
  const auto& dram = from.host().dram();
  machine.hbm_link = 0;
  machine.links.push_back({.name = "hbm", .bandwidth = rate(from.gpu().hbm().bandwidth())});
  machine.dram_link = 1;
  machine.links.push_back(
      {.name = "host_dram",
       .bandwidth = rate(dram.bandwidth()),
       .sharers = from.host().has_dram_sharers() ? count(from.host().dram_sharers()) : machine.gpu_count});
  for (const auto& l : from.link()) {
    Link link{.name = l.name(), .bandwidth = rate(l.bandwidth())};
    if (l.has_sharers()) link.sharers = count(l.sharers());
    if (l.has_energy()) link.picojoules_per_byte = number(l.energy(), Dimension::energy_per_byte);
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
  const double f1 = share(duplex.forward_share()), f2 = share(duplex.backward_share());
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
    route.from = static_cast<std::uint8_t>(machine.tier(r.from()));
    route.to = static_cast<std::uint8_t>(machine.tier(r.to()));
    route.pageable = r.pageable();
    route.engine = static_cast<std::uint8_t>(r.engine());
    route.links = link_indices(r.crosses(), machine);
    route.latency = time(r.latency());
    route.bandwidth = r.has_bandwidth() ? rate(r.bandwidth()) : std::numeric_limits<double>::infinity();
    route.efficiency = parse_curve(r.efficiency());
    machine.routes.push_back(route);
  }
}

void read_fabrics(const schema::Machine& from, Machine& machine) {
  for (const auto& f : from.fabric()) {
    Fabric fabric;
    fabric.name = f.name();
    fabric.links = link_indices(f.crosses(), machine);
    fabric.bus_bandwidth = rate(f.bus_bandwidth());
    fabric.step_latency = time(f.step_latency());
    fabric.base_latency = time(f.base_latency());
    if (f.has_max_ranks()) fabric.max_ranks = count(f.max_ranks());
    fabric.efficiency = parse_curve(f.efficiency());
    if (f.has_residual()) fabric.residual = share(f.residual());
    machine.fabrics.push_back(fabric);
  }
}

// No transfer is faster than the slowest link that it crosses.
void cap_routes(Machine& machine) {
  for (Route& route : machine.routes)
    for (const std::uint16_t link : route.links)
      route.bandwidth = std::min(route.bandwidth, machine.links[link].bandwidth);
  for (Fabric& fabric : machine.fabrics)
    for (const std::uint16_t link : fabric.links)
      fabric.bus_bandwidth = std::min(fabric.bus_bandwidth, machine.links[link].bandwidth);
}

// What no single number shows. "" if the machine hangs together.
std::string contradiction(const Machine& machine) {
  if (machine.tiers.size() > 100 || machine.links.size() > 1000) return "it has more than 100 tiers or 1000 links";
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
  return negative_duration(machine);
}

Machine build(const schema::Machine& from) {
  Machine machine;
  machine.name = from.name();
  machine.description = from.description();
  machine.gpu_count = count(from.gpu_count());
  machine.gpu = read_gpu(from.gpu());
  machine.host = read_host(from.host());
  read_tiers(from, machine);
  read_links(from, machine);
  read_routes(from, machine);
  read_fabrics(from, machine);
  for (const auto& d : from.duplex()) add_duplex(d, machine);
  cap_routes(machine);
  machine.price_errors = price_errors_of(machine);
  if (from.has_price()) machine.dollars_per_hour = number(from.price(), Dimension::price_rate);
  if (from.has_power()) machine.watts = number(from.power(), Dimension::power);
  if (from.has_idle_power()) machine.idle_watts = number(from.idle_power(), Dimension::power);
  return machine;
}

// The folder of the source tree, unless the environment names another: for a program that was moved.
fs::path machine_folder() {
  const char* named = std::getenv("MEMWALL_MACHINES");
  return named != nullptr && *named != '\0' ? named : MEMWALL_MACHINE_DIR;
}

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
    const std::string near = nearest_name(name_or_path, known);
    throw UsageError(fmt::format("There is no machine \"{}\"{}; known are {}, or give the path of a {} file.",
                                 name_or_path, near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near),
                                 fmt::join(known, ", "), kSuffix));
  }
  return machine_folder() / (name_or_path + std::string(kSuffix));
}

}  // namespace

MachineText read_machine_text(const std::string& name_or_path, const std::vector<std::string>& settings) {
  const fs::path path = find_file(name_or_path);
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) throw InputError(fmt::format("{}: the machine file cannot be read ({}).", path.string(), error.message()));
  if (bytes > kLargestFile)
    throw InputError(fmt::format("{}: {} bytes are too many for a machine file; expected at most {}.", path.string(),
                                 bytes, kLargestFile));
  std::ifstream stream(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  if (!stream.good() && !stream.eof())
    throw InputError(fmt::format("{}: the machine file cannot be read.", path.string()));
  const bool shipped = path.parent_path() == machine_folder();
  MachineText text(shipped ? path.filename().string() : path.string(), content);
  for (const std::string& setting : settings) text.set(setting);
  return text;
}

Machine load_machine(const std::string& name_or_path, const std::vector<std::string>& settings) {
  const Machine machine = build(read_machine_text(name_or_path, settings).machine());
  const std::string problem = contradiction(machine);
  if (problem.empty()) return machine;
  if (!settings.empty())
    throw UsageError(fmt::format("--set: machine {} makes no sense then: {}.", machine.name, problem));
  throw InputError(fmt::format("{}: {}.", name_or_path, problem));
}

Machine parse_machine(const std::string& text, const std::string& name) {
  const Machine machine = build(MachineText(name, text).machine());
  if (const std::string problem = contradiction(machine); !problem.empty())
    throw InputError(fmt::format("{}: {}.", name, problem));
  return machine;
}

std::vector<MachineNumber> machine_numbers(const std::string& name_or_path, const std::vector<std::string>& settings) {
  return read_machine_text(name_or_path, settings).numbers();
}

std::vector<MachineSummary> list_machines() {
  std::vector<MachineSummary> machines;
  for (const std::string& name : machine_names()) {
    const MachineText text = read_machine_text(name, {});
    machines.push_back({name, text.machine().description()});
  }
  return machines;
}

std::string machine_for_device(const std::string& device_name, Bytes total_memory) {
  std::string best;
  double best_difference = 0.1;  // drivers keep a few percent back; another variant differs by more
  for (const std::string& name : machine_names()) {
    const Machine machine = load_machine(name);
    const auto& aliases = machine.gpu.aliases;
    const bool listed = std::find(aliases.begin(), aliases.end(), device_name) != aliases.end();
    if (machine.gpu.name != device_name && !listed) continue;
    const auto capacity = static_cast<double>(machine.tiers.front().capacity);
    const double difference = total_memory > 0 ? std::abs(static_cast<double>(total_memory) - capacity) / capacity : 0;
    if (difference > best_difference || (!best.empty() && difference == best_difference)) continue;
    best = name;
    best_difference = difference;
  }
  return best;
}

}  // namespace memwall
