#include "cli/print/machine_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "cli/print/table_cells.h"
#include "models/hw/collective_cost.h"
#include "models/hw/kernel_cost.h"

namespace memwall {
namespace {

constexpr double kMega = 1e6, kTera = 1e12, kPeta = 1e15, kHour = 3600;

double peak(const Machine& m, DataType type) {
  for (const PeakRate& p : m.gpu.peaks)
    if (p.data_type == type) return p.flops;
  return 0;
}

// The rate at which training computes: bf16, where the GPU has it, else fp16, else the widest there is.
double training_peak(const Machine& m) {
  const DataType type = peak(m, DataType::bf16) > 0 ? DataType::bf16 : DataType::fp16;
  return peak_flops(m.gpu, type, OperatorClass::gemm);
}

std::string generation(const Machine& m) {
  if (m.gpu.name.find("AMD") != std::string::npos) return "AMD CDNA";
  if (m.gpu.name.find("NVIDIA") == std::string::npos && m.gpu.name.find("Tesla") == std::string::npos) return "models";
  switch (m.gpu.compute_major) {
    case 7:
      return m.gpu.compute_minor == 5 ? "NVIDIA Turing" : "NVIDIA Volta";
    case 8:
      return m.gpu.compute_minor == 9 ? "NVIDIA Ada" : "NVIDIA Ampere";
    case 9:
      return "NVIDIA Hopper";
    case 10:
      return "NVIDIA Blackwell";
    default:
      return fmt::format("compute {}", m.gpu.compute_major);
  }
}

double hbm_bandwidth(const Machine& m) { return m.links[m.hbm_link].bandwidth; }

Cell known_rate_cell(double value) {
  return value > 0 && std::isfinite(value) ? number_cell(human_rate(value), plain_number(value)) : cell("-");
}
Cell teraflops_cell(double value) {
  return value > 0 ? number_cell(fmt::format("{:.4g} TFLOP/s", value / kTera), plain_number(value)) : cell("-");
}
Cell dollars_cell(const Machine& m) {
  if (m.dollars_per_hour <= 0) return cell("-");
  return number_cell(fmt::format("{:.2f} $/h", m.dollars_per_hour), plain_number(m.dollars_per_hour));
}

// What the GPUs of a node, or eight of them, talk over.
std::string fabric_of_node(const Machine& m) {
  const Fabric* fabric = m.fabric(std::clamp(m.gpu_count, 2u, 8u));
  return fabric ? fabric->name : "-";
}

std::vector<const Machine*> by_generation(const std::vector<Machine>& machines) {
  std::vector<const Machine*> sorted;
  for (const Machine& m : machines) sorted.push_back(&m);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Machine* a, const Machine* b) { return generation(*a) < generation(*b); });
  return sorted;
}

// ---- side by side

struct Number {
  double value = 0;  // 0 = not known
  std::string text;
};

struct ComparisonLine {
  std::string name;
  std::function<Number(const Machine&)> of;
};

Number rate(double value) { return {std::isfinite(value) ? value : 0, human_rate(value)}; }
Number size(double value) { return {value, human_bytes(static_cast<Bytes>(value))}; }
Number time(Duration value) { return {to_seconds(value), human_time(value)}; }
Number plain(double value, const char* unit = "") {
  return {std::isfinite(value) ? value : 0, fmt::format("{:.4g}{}{}", value, *unit ? " " : "", unit)};
}

std::vector<ComparisonLine> compute_lines(const std::vector<Machine>& machines) {
  std::vector<ComparisonLine> lines{{"GPUs", [](const Machine& m) { return plain(m.gpu_count); }},
                                    {"multiprocessors", [](const Machine& m) { return plain(m.gpu.multiprocessors); }}};
  for (const DataType t : {DataType::fp64, DataType::fp32, DataType::tf32, DataType::fp16, DataType::bf16,
                           DataType::fp8, DataType::int8}) {
    if (std::none_of(machines.begin(), machines.end(), [&](const Machine& m) { return peak(m, t) > 0; })) continue;
    lines.push_back(
        {fmt::format("peak {}", to_string(t)), [t](const Machine& m) { return plain(peak(m, t) / kTera, "TFLOP/s"); }});
  }
  lines.push_back(
      {"bf16 or fp16, main loop", [](const Machine& m) {
         return plain(training_peak(m) *
                          main_loop_share(m.gpu, peak(m, DataType::bf16) > 0 ? DataType::bf16 : DataType::fp16) / kTera,
                      "TFLOP/s");
       }});
  return lines;
}

std::vector<ComparisonLine> memory_lines() {
  return {
      {"HBM capacity", [](const Machine& m) { return size(static_cast<double>(m.tiers.front().capacity)); }},
      {"HBM bandwidth", [](const Machine& m) { return rate(hbm_bandwidth(m)); }},
      {"HBM, streaming kernels",
       [](const Machine& m) { return rate(hbm_bandwidth(m) * efficiency_of(m.gpu, OperatorClass::memory).memory); }},
      {"HBM load latency",
       [](const Machine& m) {
         const auto& points = m.gpu.load_latency.points;
         return points.empty() ? Number{} : time(from_seconds(points.back().second));
       }},
      {"L2 capacity", [](const Machine& m) { return size(static_cast<double>(m.gpu.l2_bytes)); }},
      {"L2 bandwidth", [](const Machine& m) { return rate(m.gpu.l2_bandwidth); }},
      {"smallest kernel", [](const Machine& m) { return time(efficiency_of(m.gpu, OperatorClass::memory).fixed); }}};
}

Number route_rate(const Machine& m, const char* from, const char* to) {
  const int a = m.tier(from), b = m.tier(to);
  const Route* route = a < 0 || b < 0 ? nullptr : m.route(a, b, false);
  return route ? rate(route->bandwidth) : Number{};
}

// What one GPU has of a route while all the others that share its links use it too.
Number shared_rate(const Machine& m, const char* from, const char* to) {
  const int a = m.tier(from), b = m.tier(to);
  const Route* route = a < 0 || b < 0 ? nullptr : m.route(a, b, false);
  if (!route) return {};
  double least = route->bandwidth;
  for (const std::uint16_t link : route->links)
    least = std::min(least, m.links[link].bandwidth / m.links[link].sharers);
  return rate(least);
}

std::vector<ComparisonLine> link_lines(const std::vector<Machine>& machines) {
  std::vector<ComparisonLine> lines;
  const auto add = [&](const char* name, const char* from, const char* to) {
    lines.push_back({name, [=](const Machine& m) { return route_rate(m, from, to); }});
  };
  add("host to HBM", "host", "hbm");
  lines.push_back({"  of each, all at once", [](const Machine& m) { return shared_rate(m, "host", "hbm"); }});
  add("HBM to host", "hbm", "host");
  add("HBM to a peer", "hbm", "peer_hbm");
  if (std::any_of(machines.begin(), machines.end(), [](const Machine& m) { return m.tier("cxl") >= 0; }))
    add("CXL to host", "cxl", "host");
  add("NVMe to host", "nvme", "host");
  lines.push_back({"  of each, all at once", [](const Machine& m) { return shared_rate(m, "nvme", "host"); }});
  add("host to NVMe", "host", "nvme");
  return lines;
}

ComparisonLine all_reduce_line(std::uint32_t ranks) {
  return {fmt::format("all-reduce 256 MiB, {} GPUs", ranks), [ranks](const Machine& m) {
            if (!m.fabric(ranks)) return Number{};
            return time(collective_cost(m, CollectiveKind::all_reduce, Bytes{256} << 20, ranks).duration);
          }};
}

std::vector<ComparisonLine> host_lines() {
  return {{"host cores", [](const Machine& m) { return plain(m.host.cores); }},
          {"host DRAM",
           [](const Machine& m) {
             const int host = m.tier("host");
             return host < 0 ? Number{} : size(static_cast<double>(m.tiers[static_cast<std::size_t>(host)].capacity));
           }},
          {"host DRAM bandwidth", [](const Machine& m) { return rate(m.links[m.dram_link].bandwidth * m.host.numa_nodes); }},
          {"CPU optimizer", [](const Machine& m) { return rate(m.host.optimizer_bandwidth); }},
          {"kernel launch", [](const Machine& m) { return time(m.host.launch); }},
          {"price of a GPU", [](const Machine& m) { return plain(m.dollars_per_hour, "$/h"); }},
          {"power of a GPU", [](const Machine& m) { return plain(m.watts, "W"); }},
          {"idle power", [](const Machine& m) { return plain(m.idle_watts, "W"); }}};
}

std::vector<ComparisonLine> derived_lines() {
  return {{"HBM bytes per FLOP", [](const Machine& m) { return plain(hbm_bandwidth(m) / training_peak(m)); }},
          {"host bytes per MFLOP",
           [](const Machine& m) { return plain(route_rate(m, "host", "hbm").value / training_peak(m) * kMega); }},
          {"HBM bytes per TFLOP/s",
           [](const Machine& m) {
             return size(static_cast<double>(m.tiers.front().capacity) / (training_peak(m) / kTera));
           }},
          {"$ per 1000 PFLOP at peak",
           [](const Machine& m) { return plain(m.dollars_per_hour / kHour / (training_peak(m) / kPeta) * 1000, "$"); }},
          {"$ per PB of HBM traffic",
           [](const Machine& m) { return plain(m.dollars_per_hour / kHour / hbm_bandwidth(m) * kPeta, "$"); }},
          {"W per TFLOP/s", [](const Machine& m) { return plain(m.watts / (training_peak(m) / kTera), "W"); }}};
}

std::vector<ComparisonLine> comparison_lines(const std::vector<Machine>& machines) {
  std::vector<ComparisonLine> lines;
  const auto add = [&](std::vector<ComparisonLine> more) {
    for (ComparisonLine& line : more) lines.push_back(std::move(line));
  };
  add(compute_lines(machines));
  add(memory_lines());
  add(link_lines(machines));
  for (const std::uint32_t ranks : {2u, 8u, 64u}) lines.push_back(all_reduce_line(ranks));
  add(host_lines());
  add(derived_lines());
  return lines;
}

Cell value_cell(const Number& n) { return n.value > 0 ? number_cell(n.text, plain_number(n.value)) : cell("-"); }

Cell ratio_cell(const Number& first, const Number& other) {
  if (!(first.value > 0 && other.value > 0)) return cell("-");
  const double ratio = other.value / first.value;
  return number_cell(fmt::format("{:.3g}x", ratio), plain_number(ratio));
}

}  // namespace

Table machine_list_table(const std::vector<Machine>& machines) {
  Table t{.name = "machines",
          .title = "",
          .columns = {"generation", "name", "gpus", "hbm", "bandwidth", "peak_16_bit", "fabric", "price"},
          .headings = {"", "name", "GPUs", "HBM", "bandwidth", "16-bit peak", "fabric", "price"},
          .rows = {},
          .wrap = true};
  std::string last;
  for (const Machine* m : by_generation(machines)) {
    const std::string of = generation(*m);
    t.rows.push_back({cell(of == last ? "" : of), cell(m->name), count_cell(m->gpu_count),
                      bytes_cell(m->tiers.front().capacity), known_rate_cell(hbm_bandwidth(*m)),
                      teraflops_cell(training_peak(*m)), cell(fabric_of_node(*m)), dollars_cell(*m)});
    last = of;
  }
  return t;
}

Table machine_description_table(const std::vector<Machine>& machines) {
  Table t{.name = "machines",
          .title = "",
          .columns = {"name", "generation", "gpus", "hbm", "bandwidth", "peak_16_bit", "price", "description"},
          .headings = {},
          .rows = {},
          .wrap = true};
  for (const Machine& m : machines)
    t.rows.push_back({cell(m.name), cell(generation(m)), count_cell(m.gpu_count), bytes_cell(m.tiers.front().capacity),
                      known_rate_cell(hbm_bandwidth(m)), teraflops_cell(training_peak(m)), dollars_cell(m),
                      cell(m.description)});
  return t;
}

Table machine_comparison_table(const std::vector<Machine>& machines) {
  Table t{.name = "comparison", .title = "", .columns = {"number"}, .headings = {""}, .rows = {}};
  for (const Machine& m : machines) {
    t.columns.push_back(m.name);
    t.headings.push_back(m.name);
  }
  for (std::size_t i = 1; i < machines.size(); ++i) {
    t.columns.push_back(fmt::format("{}/{}", machines[i].name, machines[0].name));
    t.headings.push_back(machines.size() == 2 ? "ratio" : fmt::format("{}/1", i + 1));
  }
  for (const ComparisonLine& line : comparison_lines(machines)) {
    std::vector<Number> numbers;
    for (const Machine& m : machines) numbers.push_back(line.of(m));
    if (std::none_of(numbers.begin(), numbers.end(), [](const Number& n) { return n.value > 0; })) continue;
    std::vector<Cell> row{cell(line.name)};
    for (const Number& n : numbers) row.push_back(value_cell(n));
    for (std::size_t i = 1; i < numbers.size(); ++i) row.push_back(ratio_cell(numbers[0], numbers[i]));
    t.rows.push_back(std::move(row));
  }
  return t;
}

}  // namespace memwall
