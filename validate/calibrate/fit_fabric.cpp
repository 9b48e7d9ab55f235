// Collectives: the bus bandwidth, step latency and efficiency of the fabric that the measured ranks used.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/error.h"
#include "validate/calibrate/fitting.h"
#include "validate/calibrate/measured_rows.h"

namespace memwall {
namespace {

struct CollectiveBenchmark {
  const char* benchmark;
  CollectiveKind kind;
  double steps;  // of a ring, per rank beyond the first
};
// What ZeRO uses comes first; an all-reduce that the switch does is faster than the ring that a file describes.
constexpr CollectiveBenchmark kCollectives[] = {
    {"nccl_all_gather", CollectiveKind::all_gather, 1},
    {"nccl_reduce_scatter", CollectiveKind::reduce_scatter, 1},
    {"nccl_all_reduce", CollectiveKind::all_reduce, 2},
};

std::vector<PricedRow> priced(const std::vector<Measurement>& rows, CollectiveKind kind) {
  std::vector<PricedRow> result;
  for (const Measurement& row : rows)
    result.push_back(
        {row, [bytes = std::llround(size_of(row)), kind, ranks = static_cast<std::uint32_t>(row.number("ranks"))](
                  const Machine&, const Pricer& p) { return to_seconds(p.collective(kind, bytes, ranks)); }});
  return result;
}

// The rows of the largest number of ranks.
std::vector<Measurement> widest(const Fitting& f, const char* benchmark, double& ranks) {
  std::vector<Measurement> rows = time_rows(f.set, benchmark);
  ranks = 0;
  for (const Measurement& row : rows) {
    const double n = row.number("ranks");
    if (!(n >= 2 && n <= 1e6 && n == std::floor(n)))
      throw InputError(fmt::format("{}: {} ranks; expected a whole number from 2 on.", row_name(row), n));
    ranks = std::max(ranks, n);
  }
  std::erase_if(rows, [&](const Measurement& row) { return row.number("ranks") != ranks; });
  return rows;
}

void fit_collective(Fitting& f, const CollectiveBenchmark& c, const std::vector<Measurement>& rows, double ranks,
                    const std::string& path) {
  // The law's bytes are the message, those of the bus what each rank sends of it.
  const TransferTimeModel law = fit_transfer_time(times_by_size(rows), false);
  const double wire = c.steps * (ranks - 1) / ranks;
  const double bus = law.bandwidth * wire;
  if (bus > 1e14)
    throw InputError(fmt::format("{}: a bus bandwidth of {} is beyond any fabric; expected at most {}.",
                                 row_name(rows.front()), rate_text(bus), rate_text(1e14)));
  if (law.latency > 0.01)
    throw InputError(fmt::format("{}: the latency would be {}; expected at most {}.", c.benchmark,
                                 time_text(law.latency), time_text(0.01)));
  for (const std::string& link : f.machine_file.bandwidths_crossed(path)) f.require_bandwidth(link, bus, c.benchmark);
  const std::string sentence = fmt::format("{} on {} ranks", sizes_sentence(rows), ranks);
  const std::vector<PricedRow> explained = priced(rows, c.kind);
  const double base = std::min(f.machine_file.number(path + ".base_latency"), law.latency);
  f.fit(path + ".bus_bandwidth", rate_text(bus), sentence, explained);
  f.fit(path + ".step_latency", time_text((law.latency - base) / (c.steps * (ranks - 1))), sentence, explained);
  f.fit(path + ".base_latency", time_text(base), sentence, explained);
  f.machine_file.clear(path + ".efficiency");
  if (law.efficiency.empty()) return;
  std::vector<std::string> points;
  for (const auto& [bytes, share] : law.efficiency)
    points.push_back(fmt::format("{}: {}", size_text(bytes), plain_text(share)));
  f.machine_file.set_curve(path + ".efficiency", points, "measured");
  f.numbers.push_back({path + ".efficiency", sentence, explained});
}

}  // namespace

void fit_fabric(Fitting& f) {
  bool fitted = false;
  for (const CollectiveBenchmark& c : kCollectives) {
    double ranks = 0;
    const std::vector<Measurement> rows = widest(f, c.benchmark, ranks);
    if (rows.empty()) continue;
    const Fabric* fabric = f.base.fabric(static_cast<std::uint32_t>(ranks));
    if (!fabric) {
      f.notes.push_back(
          fmt::format("{} is not used: no fabric of {} reaches {} ranks.", c.benchmark, f.base_name, ranks));
      continue;
    }
    const std::string path = "fabric." + fabric->name;
    if (!fitted && times_by_size(rows).size() >= 3) {
      fit_collective(f, c, rows, ranks, path);
      fitted = true;
      continue;
    }
    f.numbers.push_back({path, sizes_sentence(rows), priced(rows, c.kind), false});
  }
}

}  // namespace memwall
