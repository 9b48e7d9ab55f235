#include "validate/published/component_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "models/hw/collective_cost.h"
#include "models/hw/kernel_cost.h"
#include "models/hw/storage_cost.h"
#include "sim/byte_units.h"
#include "sim/error.h"

namespace memwall {
namespace {

using Points = std::vector<ComponentPoint>;
using Rows = std::vector<CsvTableRow>;

constexpr double kGiga = 1e9, kKibi = 1024;

std::string size_text(double bytes) { return scaled_text(bytes, kBinaryBytes, 4, TrailingZeros::dropped); }

bool filled(const CsvTableRow& row, const std::string& column) { return row.has(column) && !row.text(column).empty(); }

// Are sizes of this row among those that are asked for?
bool wanted(const ComponentRows& rows, double bytes) {
  const bool small = rows.smallest > 0 && bytes < static_cast<double>(rows.smallest);
  return !small && !(rows.largest > 0 && bytes > static_cast<double>(rows.largest));
}

// The best of each kernel over all occupancies.
Points stream_points(const Machine& m, const ComponentRows&, const Rows& table) {
  const double share = efficiency_of(m.gpu, OperatorClass::memory).memory;
  Points points;
  for (const char* kernel : {"read", "scale", "triad", "3pt", "5pt"}) {
    double best = 0;
    for (const CsvTableRow& row : table)
      if (filled(row, kernel)) best = std::max(best, row.number(kernel) * kGiga);
    if (best > 0) points.push_back({kernel, best, m.links[m.hbm_link].bandwidth * share, "B/s"});
  }
  return points;
}

const EfficiencyCurve& stated(const EfficiencyCurve& curve, const Machine& m, const char* name) {
  if (curve.points.empty()) throw UsageError(fmt::format("Machine {} has no gpu.{}.", m.name, name));
  return curve;
}

Points read_points(const Machine& m, const ComponentRows& rows, const Rows& table) {
  const bool shared = rows.measure == ComponentMeasure::shared_read;
  const EfficiencyCurve& curve = shared ? stated(m.gpu.shared_read_bandwidth, m, "shared_read_bandwidth")
                                        : stated(m.gpu.private_read_bandwidth, m, "private_read_bandwidth");
  Points points;
  for (const CsvTableRow& row : table) {
    const double bytes = row.number(shared && filled(row, "total_kB") ? "total_kB" : "dataset_kB") * kKibi;
    if (wanted(rows, bytes)) points.push_back({size_text(bytes), row.number("GBps") * kGiga, curve.at(bytes), "B/s"});
  }
  return points;
}

Points latency_points(const Machine& m, const ComponentRows& rows, const Rows& table) {
  const EfficiencyCurve& curve = stated(m.gpu.load_latency, m, "load_latency");
  Points points;
  for (const CsvTableRow& row : table) {
    const double bytes = row.number("working_set_kB") * kKibi;
    if (wanted(rows, bytes))
      points.push_back({size_text(bytes), row.number("latency_ns") * 1e-9, curve.at(bytes), "s"});
  }
  return points;
}

// Kernels that read and write 8 B per element, the best of the block sizes.
Points small_kernel_points(const Machine& m, const ComponentRows& rows, const Rows& table) {
  Points points;
  for (const CsvTableRow& row : table) {
    Op op;
    op.operator_class = OperatorClass::memory;
    op.bytes = 16 * row.integer("n_elems");
    double rate = 0;
    for (int c = 1; c <= 6; ++c) {
      const std::string column = fmt::format("c{}", c);
      if (filled(row, column) && row.text(column) != "0" && row.text(column) != "0.0")
        rate = std::max(rate, row.number(column) * kGiga);
    }
    const auto bytes = static_cast<double>(op.bytes);
    if (rate > 0 && wanted(rows, bytes))
      points.push_back({size_text(bytes), bytes / rate, to_seconds(kernel_duration(m, op)), "s"});
  }
  return points;
}

struct RouteEnds {
  const Route* route = nullptr;
  const Route* against = nullptr;  // null = nothing runs the other way
};

const Route& route_named(const Machine& m, const std::string& name) {
  static constexpr std::array<std::array<const char*, 3>, 11> kRoutes{{{"h2d", "host", "hbm"},
                                                                       {"d2h", "hbm", "host"},
                                                                       {"to_peer", "hbm", "peer_hbm"},
                                                                       {"from_peer", "peer_hbm", "hbm"},
                                                                       {"nvme_to_host", "nvme", "host"},
                                                                       {"host_to_nvme", "host", "nvme"},
                                                                       {"nvme_to_hbm", "nvme", "hbm"},
                                                                       {"hbm_to_nvme", "hbm", "nvme"},
                                                                       {"d2d", "hbm", "hbm"},
                                                                       {"cxl_to_host", "cxl", "host"},
                                                                       {"host_to_cxl", "host", "cxl"}}};
  for (const auto& [known, from, to] : kRoutes)
    if (name == known)
      if (const Route* route = m.route(m.tier(from), m.tier(to), false)) return *route;
  throw UsageError(fmt::format("Machine {} has no route \"{}\".", m.name, name));
}

RouteEnds ends_of(const Machine& m, const std::string& of) {
  const std::size_t plus = of.find('+');
  RouteEnds ends;
  ends.route = &route_named(m, of.substr(0, plus));
  if (plus != std::string::npos) ends.against = &route_named(m, of.substr(plus + 1));
  return ends;
}

// What a route carries while another one runs against it: its part, by weight, of every link that both cross.
double rate_against(const Machine& m, const RouteEnds& ends) {
  double rate = ends.route->bandwidth;
  if (!ends.against) return rate;
  for (const std::uint16_t link : ends.route->links) {
    const auto& other = ends.against->links;
    if (std::find(other.begin(), other.end(), link) == other.end()) continue;
    const double part = ends.route->weight / (ends.route->weight + ends.against->weight);
    const double left = std::max(m.links[link].bandwidth * part, m.links[link].bandwidth - ends.against->bandwidth);
    rate = std::min(rate, left);
  }
  return rate;
}

Points copy_rate_points(const Machine& m, const ComponentRows& rows, const Rows& table) {
  const RouteEnds ends = ends_of(m, rows.of);
  constexpr double kLarge = 1 << 29;                               // nvbandwidth's default
  const double both = ends.route->from == ends.route->to ? 2 : 1;  // within the device: bytes read and written
  const double predicted = both * rate_against(m, ends) * ends.route->efficiency.at(kLarge);
  Points points;
  for (const CsvTableRow& row : table)
    points.push_back({row.text("test"), row.number("GBps") * kGiga, predicted, "B/s"});
  return points;
}

// What a synchronous call adds is the same for every size: times beyond the smallest copy's, where they are more than
// noise beside it.
Points copy_time_points(const Machine& m, const ComponentRows& rows, const Rows& table) {
  const Route& route = *ends_of(m, rows.of).route;
  const auto price = [&](double bytes) { return bytes / (route.bandwidth * route.efficiency.at(bytes)); };
  double smallest = INFINITY, shortest = INFINITY;
  for (const CsvTableRow& row : table) {
    smallest = std::min(smallest, row.number("size_kB") * kKibi);
    shortest = std::min(shortest, row.number("time_ms_derived") * 1e-3);
  }
  Points points;
  for (const CsvTableRow& row : table) {
    const double bytes = row.number("size_kB") * kKibi, seconds = row.number("time_ms_derived") * 1e-3;
    if (seconds > 1.25 * shortest && wanted(rows, bytes))
      points.push_back({size_text(bytes), seconds - shortest, price(bytes) - price(smallest), "s"});
  }
  return points;
}

// "fio 4KiB blocks 16 jobs, file 16k": the block and the size of the file; how many requests were under way follows
// from their rate and latency (Little's law).
double number_before(const std::string& text, const std::string& unit, const std::string& after) {
  const std::size_t begin = after.empty() ? 0 : text.find(after);
  if (begin == std::string::npos) return 0;
  const std::size_t from = begin + after.size(), end = text.find(unit, from);
  double value = 0;
  if (end == std::string::npos) return 0;
  const char* first = text.data() + std::min(text.find_first_of("0123456789", from), end);
  std::from_chars(first, text.data() + end, value);
  return value;
}

double file_bytes(const std::string& test) {
  for (const auto& [unit, bytes] : {std::pair{"k", kKibi}, std::pair{"m", 1048576.0}, std::pair{"g", 1073741824.0}})
    if (test.ends_with(unit))
      if (const double n = number_before(test, unit, "file "); n > 0) return n * bytes;
  return 1e9;  // "1GB NVMe<->CPU"
}

Points storage_points(const Machine& m, const ComponentRows& rows, const Rows& table) {
  const Route& route = *ends_of(m, rows.of).route;
  double link = INFINITY;
  for (const std::uint16_t l : route.links) link = std::min(link, m.links[l].bandwidth);
  Points points;
  for (const CsvTableRow& row : table) {
    const std::string& test = row.text("test");
    double predicted = route.bandwidth;
    if (const double block = number_before(test, "KiB blocks", ""); block > 0 && filled(row, "iops")) {
      StorageRequests asked = route.requests;
      asked.block = static_cast<Bytes>(block * kKibi);
      asked.depth = row.number("iops") * row.number("lat_ms") * 1e-3;
      predicted = std::min(link, request_bandwidth(asked));
    }
    predicted *= route.efficiency.at(file_bytes(test));
    points.push_back({test, row.number("GBps") * kGiga, predicted, "B/s"});
  }
  return points;
}

CollectiveKind kind_of(const CsvTableRow& row) {
  if (!row.has("collective")) return CollectiveKind::all_reduce;  // vTrain's table has no other
  for (int k = 1; k <= static_cast<int>(CollectiveKind::barrier); ++k)
    if (to_string(static_cast<CollectiveKind>(k)) == row.text("collective")) return static_cast<CollectiveKind>(k);
  throw InputError(
      fmt::format("the table has a collective \"{}\", which is not known; expected \"all_reduce\" or alike.",
                  row.text("collective")));
}

double collective_seconds(const CsvTableRow& row, CollectiveKind kind, double bytes, double ranks) {
  if (filled(row, "oop_ns")) return row.number("oop_ns") * 1e-9;
  if (filled(row, "time_us")) return row.number("time_us") * 1e-6;
  return ring_share(kind, ranks) * bytes / (row.number("busbw_GBps") * kGiga);
}

Points collective_points(const Machine& m, const ComponentRows& rows, const Rows& table) {
  Points points;
  for (const CsvTableRow& row : table) {
    const std::int64_t bytes = row.integer("bytes"), ranks = std::min<std::int64_t>(row.integer("ranks"), 1 << 20);
    const auto size = static_cast<double>(bytes);
    const CollectiveKind kind = kind_of(row);
    if (!wanted(rows, size)) continue;
    const double predicted = to_seconds(collective_cost(m, kind, bytes, static_cast<std::uint32_t>(ranks)).duration);
    points.push_back({fmt::format("{} of {}, {} ranks", to_string(kind), size_text(size), ranks),
                      collective_seconds(row, kind, size, static_cast<double>(ranks)), predicted, "s"});
  }
  return points;
}

DataType type_named(const std::string& name) {
  for (const DataType t : {DataType::fp32, DataType::tf32, DataType::fp16, DataType::bf16, DataType::fp8})
    if (to_string(t) == name) return t;
  throw InputError(fmt::format("the table has a data type \"{}\"; expected fp32, tf32, fp16, bf16 or fp8.", name));
}

Points product_points(const Machine& m, const ComponentRows&, const Rows& table) {
  Points points;
  for (const CsvTableRow& row : table) {
    const std::string& shape = row.text("best_MxNxK");
    std::array<std::int64_t, 3> extent{};
    const char* at = shape.data();
    const char* const end = at + shape.size();
    for (std::int64_t& e : extent) {
      const auto [next, error] = std::from_chars(at, end, e);
      if (error != std::errc() || e <= 0 || e > 1 << 20)
        throw InputError(fmt::format("the table has a product \"{}\"; expected extents such as 1024x2048x512.", shape));
      at = next + (next != end);
    }
    const auto& [rows_of, columns, k] = extent;
    Op op;
    op.operator_class = OperatorClass::gemm;
    op.data_type = type_named(row.text("dtype"));
    op.flops = 2.0 * static_cast<double>(rows_of) * static_cast<double>(columns) * static_cast<double>(k);
    op.bytes = static_cast<Bytes>(element_bytes(op.data_type)) * (rows_of * k + k * columns + rows_of * columns);
    const double seconds = to_seconds(kernel_duration(m, op, {1, rows_of, columns, k}));
    points.push_back({shape, row.number("mamf_tflops") * 1e12, op.flops / seconds, "FLOP/s"});
  }
  return points;
}

AttentionKernel kernel_of(const ComponentRows& rows) {
  for (std::size_t i = 0; i < kAttentionKernels; ++i)
    if (to_string(static_cast<AttentionKernel>(i)) == rows.of) return static_cast<AttentionKernel>(i);
  throw InputError(fmt::format(
      "calibration.{}: of: \"{}\" is no kernel of attention; expected one as flash_attention_2.", rows.name, rows.of));
}

// 16384 tokens of 2048 features in fp16, as the FlashAttention benchmark has them; with "fwd+bwd" the backward too.
Points attention_points(const Machine& m, const ComponentRows& rows, const Rows& table) {
  const AttentionKernel kernel = kernel_of(rows);
  constexpr std::int64_t kTokens = 16384, kFeatures = 2048;
  Points points;
  for (const CsvTableRow& row : table) {
    const std::int64_t size = std::min(row.integer("head_dim"), kFeatures);
    const std::int64_t length = std::min(row.integer("seq"), kTokens), heads = kFeatures / size;
    const bool causal = row.text("causal") == "1", both = row.text("pass") == "fwd+bwd";
    const Shape shape = with_attention_kernel({kTokens / length, heads, heads, length, length, size, causal}, kernel);
    Op op;
    op.operator_class = OperatorClass::attention;
    op.data_type = DataType::fp16;
    op.phase = Phase::forward;
    double seconds = to_seconds(kernel_duration(m, op, shape));
    op.phase = Phase::backward;
    if (both) seconds += to_seconds(kernel_duration(m, op, shape));
    const double flops = 4.0 * static_cast<double>(length) * static_cast<double>(kTokens * kFeatures) *
                         (causal ? 0.5 : 1) * (both ? 3.5 : 1);
    points.push_back(
        {fmt::format("{}, {}head size {}, {} keys", row.text("pass"), causal ? "causal, " : "", size, length),
         row.number("tflops") * 1e12, flops / seconds, "FLOP/s"});
  }
  return points;
}

}  // namespace

std::vector<ComponentPoint> component_points(const Machine& machine, const ComponentRows& rows,
                                             const std::vector<CsvTableRow>& table) {
  switch (rows.measure) {
    case ComponentMeasure::stream:
      return stream_points(machine, rows, table);
    case ComponentMeasure::private_read:
    case ComponentMeasure::shared_read:
      return read_points(machine, rows, table);
    case ComponentMeasure::load_latency:
      return latency_points(machine, rows, table);
    case ComponentMeasure::small_kernel:
      return small_kernel_points(machine, rows, table);
    case ComponentMeasure::copy_time:
      return copy_time_points(machine, rows, table);
    case ComponentMeasure::copy_rate:
      return copy_rate_points(machine, rows, table);
    case ComponentMeasure::storage_rate:
      return storage_points(machine, rows, table);
    case ComponentMeasure::collective_time:
      return collective_points(machine, rows, table);
    case ComponentMeasure::product:
      return product_points(machine, rows, table);
    case ComponentMeasure::attention:
      return attention_points(machine, rows, table);
  }
  return {};
}

}  // namespace memwall
