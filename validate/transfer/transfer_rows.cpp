#include "validate/transfer/transfer_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "models/hw/kernel_cost.h"
#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/error.h"
#include "sim/quantile.h"
#include "sim/text_hash.h"
#include "validate/transfer/transfer_tables.h"

namespace memwall {
namespace {

struct LoadedMachine {
  Machine machine;
  std::unique_ptr<Pricer> prices;
};

class Machines {
 public:
  explicit Machines(TransferLoad load) : load_(load) {}
  const LoadedMachine& get(const std::string& name, const std::vector<std::string>& settings) {
    auto [at, is_new] = loaded_.try_emplace({name, settings});
    if (is_new) {
      Machine machine = load_machine(name, settings);
      at->second.machine = load_ == TransferLoad::short_runs ? in_short_runs(std::move(machine)) : std::move(machine);
      at->second.prices = make_pricer(at->second.machine);
    }
    return at->second;
  }

 private:
  TransferLoad load_;
  std::map<std::pair<std::string, std::vector<std::string>>, LoadedMachine> loaded_;
};

TransferredDuration transferred_part(const TransferRow& row, const WorkPart& old, const WorkPart& now, double seconds,
                                     const LoadedMachine& here, const LoadedMachine& there) {
  const PricedMachine from{here.machine, *here.prices}, to{there.machine, *there.prices};
  const Duration measured = from_seconds(seconds);
  if (old.op.kind == OpKind::copy) return transferred_copy(measured, old.op, row.source, row.target, from, to);
  if (old.op.kind == OpKind::collective) return transferred_collective(measured, old.op, {"", row.ranks, {}}, from, to);
  return transferred_kernel(measured, {here.machine, old.op, old.shape}, {there.machine, now.op, now.shape});
}

// What the old machine's prices say of each part, as shares of them all.
std::vector<double> shares_of(const std::vector<WorkPart>& work, const Machine& machine) {
  std::vector<double> shares;
  double sum = 0;
  for (const WorkPart& part : work) {
    const bool kernel = part.op.kind == OpKind::kernel;
    shares.push_back(kernel ? to_seconds(kernel_duration(machine, part.op, part.shape)) : 1);
    sum += shares.back();
  }
  for (double& share : shares) share /= sum;
  return shares;
}

double peak_of(const Machine& machine, const Op& op) {
  return peak_flops(machine.gpu, op.data_type, op.operator_class);
}

// The null models know one number of each machine.
void add_null_models(TransferResult& r, const Machine& here, const Machine& there) {
  const Op &op = r.row.work.front().op, &now = (r.row.new_work.empty() ? r.row.work : r.row.new_work).front().op;
  double bandwidth = here.links[here.hbm_link].bandwidth / there.links[there.hbm_link].bandwidth;
  if (op.kind == OpKind::collective)
    bandwidth = here.fabric(r.row.ranks)->bus_bandwidth / there.fabric(r.row.ranks)->bus_bandwidth;
  if (op.kind == OpKind::copy && r.row.source != r.row.target) {
    const auto rate = [&](const Machine& m) {
      return m.route(m.tier(r.row.source), m.tier(r.row.target), op.pageable)->bandwidth;
    };
    bandwidth = rate(here) / rate(there);
  }
  // The new work may be another size of the old one.
  double size = 1, old_size = 0, new_size = 0;
  if (!r.row.new_work.empty()) {
    for (const WorkPart& p : r.row.work) old_size += static_cast<double>(p.op.bytes);
    for (const WorkPart& p : r.row.new_work) new_size += static_cast<double>(p.op.bytes);
    if (old_size > 0) size = new_size / old_size;
  }
  r.by_bandwidth = r.row.measured_from * bandwidth * size;
  const bool kernel = op.kind == OpKind::kernel;
  r.by_peak = kernel ? r.row.measured_from * size * peak_of(here, op) / peak_of(there, now) : r.by_bandwidth;
}

TransferResult transferred_row(const TransferRow& row, Machines& machines) {
  const LoadedMachine &here = machines.get(row.from, row.from_settings), &there = machines.get(row.to, row.to_settings);
  const std::vector<WorkPart>& now = row.new_work.empty() ? row.work : row.new_work;
  const std::vector<double> shares = shares_of(row.work, here.machine);
  TransferResult result;
  result.row = row;
  double band = 0;
  for (std::size_t i = 0; i < row.work.size(); ++i) {
    const TransferredDuration result_of_part =
        transferred_part(row, row.work[i], now[i], shares[i] * row.measured_from, here, there);
    result.predicted += to_seconds(result_of_part.duration);
    band += to_seconds(result_of_part.duration) * result_of_part.error;
  }
  result.error_band = band / result.predicted;
  // The two directions of a pair, and sizes of one series on one machine pair, must not be split by direction.
  result.fits = hash_of(row.table + "/" + row.name) % 2 == 0;
  add_null_models(result, here.machine, there.machine);
  return result;
}

double quantile(std::vector<double> values, double share) {
  return values.empty() ? 0 : lower_quantile(std::move(values), share);
}

// As traces/run/analysis/step_interval.h makes it of an error of 90 %.
double half_width_80(const TransferResult& r) { return 1.2816 / 1.645 * r.error_band; }

TransferSummary summary_of(const std::string& kind, const std::vector<const TransferResult*>& results) {
  std::vector<double> errors, sizes, fitted, bands, bandwidth, peak;
  std::size_t covered = 0, covered_80 = 0;
  std::vector<double> widths;
  TransferSummary s;
  s.kind = kind;
  s.rows = results.size();
  for (const TransferResult* r : results) {
    errors.push_back(r->error());
    sizes.push_back(std::abs(r->error()));
    bands.push_back(r->error_band);
    bandwidth.push_back(std::abs(r->by_bandwidth / r->row.measured_to - 1));
    peak.push_back(std::abs(r->by_peak / r->row.measured_to - 1));
    if (r->fits) fitted.push_back(sizes.back());
    s.held_out += !r->fits;
    covered += !r->fits && r->covered();
    covered_80 += !r->fits && r->covered_by_80_percent();
    widths.push_back(half_width_80(*r));
  }
  s.median = quantile(sizes, 0.5);
  s.p90 = quantile(sizes, 0.9);
  s.bias = quantile(errors, 0.5);
  s.fitted_p90 = quantile(fitted, 0.9);
  s.band = quantile(bands, 0.5);
  s.coverage = s.held_out > 0 ? static_cast<double>(covered) / static_cast<double>(s.held_out) : 0;
  s.coverage_80 = s.held_out > 0 ? static_cast<double>(covered_80) / static_cast<double>(s.held_out) : 0;
  s.half_width_80 = quantile(widths, 0.5);
  s.bandwidth_median = quantile(bandwidth, 0.5);
  s.peak_median = quantile(peak, 0.5);
  return s;
}

}  // namespace

// The error is of the predicted duration; the truth lies within predicted x (1 +- band).
bool TransferResult::covered() const { return std::abs(row.measured_to / predicted - 1) <= error_band; }

bool TransferResult::covered_by_80_percent() const {
  return std::abs(std::log(row.measured_to / predicted)) <= half_width_80(*this);
}

WorkPart kernel_work(OperatorClass operator_class, DataType type, Phase phase, double bytes, Shape shape, int kernels) {
  WorkPart part;
  part.op.kind = OpKind::kernel;
  part.op.operator_class = operator_class;
  part.op.data_type = type;
  part.op.phase = phase;
  part.op.bytes = std::llround(bytes);
  part.op.kernels = static_cast<std::uint16_t>(kernels);
  part.shape = std::move(shape);
  return part;
}

void add_both_ways(std::vector<TransferRow>& rows, const TransferRow& row) {
  rows.push_back(row);
  TransferRow reverse = row;
  std::swap(reverse.from, reverse.to);
  std::swap(reverse.from_settings, reverse.to_settings);
  std::swap(reverse.measured_from, reverse.measured_to);
  if (!row.new_work.empty()) std::swap(reverse.work, reverse.new_work);
  rows.push_back(std::move(reverse));
}

std::vector<TransferRow> transfer_rows(const std::filesystem::path& folder, const std::filesystem::path& own) {
  if (!std::filesystem::is_directory(folder))
    throw InputError(fmt::format("{}: there is no such folder of measurements.", folder.string()));
  std::set<std::string> machines;
  for (const MachineSummary& m : list_machines()) machines.insert(m.name);
  std::vector<TransferRow> all;
  const auto add = [&](std::vector<TransferRow> rows) {
    for (TransferRow& row : rows)
      if (machines.contains(row.from) && machines.contains(row.to)) all.push_back(std::move(row));
  };
  const auto table = [&](const char* name) -> std::vector<CsvTableRow> {
    const std::filesystem::path path = folder / "published" / fmt::format("{}.csv", name);
    std::size_t damaged = 0;  // rows of link_bandwidth_points.csv with commas in them
    return std::filesystem::exists(path) ? read_csv_table(path, &damaged) : std::vector<CsvTableRow>();
  };
  const std::filesystem::path nvl = own / "liger_h100_nvl.csv";
  if (std::filesystem::exists(nvl))
    add(liger_rows(table("liger_kernel_microbench_a100_h100_b200"), read_csv_table(nvl)));
  add(attention_rows(table("flashattention_tflops_a100_h100")));
  add(product_rows(table("mamf_gemm_tflops")));
  add(stream_rows(table("gpubenches_stream")));
  add(small_kernel_rows(table("gpubenches_small_kernels")));
  add(resnet_rows(folder / "traces" / "triosim" / "resnet50_h100_bs128" / "trace.csv",
                  folder / "traces" / "kineto" / "resnet50_v100_bs32_2021.json.gz"));
  add(reduction_rows(table("vtrain_nccl_allreduce_lut_a100_v100")));
  add(collective_rows(table("nccl_collectives_busbw")));
  add(link_rows(table("link_bandwidth_points")));
  if (all.empty())
    throw InputError(fmt::format(
        "{}: found no measurement of one piece of work on two GPUs; expected the folder that holds published "
        "and traces.",
        folder.string()));
  return all;
}

std::vector<TransferResult> transferred_rows(const std::vector<TransferRow>& rows, TransferLoad load) {
  Machines machines(load);
  std::vector<TransferResult> results;
  for (const TransferRow& row : rows) results.push_back(transferred_row(row, machines));
  return results;
}

std::vector<TransferSummary> summarize_transfer(const std::vector<TransferResult>& results) {
  std::vector<std::string> kinds;
  std::map<std::string, std::vector<const TransferResult*>> by_kind;
  std::vector<const TransferResult*> all;
  for (const TransferResult& r : results) {
    auto& group = by_kind[r.row.kind];
    if (group.empty()) kinds.push_back(r.row.kind);
    group.push_back(&r);
    all.push_back(&r);
  }
  std::vector<TransferSummary> summaries;
  for (const std::string& kind : kinds) summaries.push_back(summary_of(kind, by_kind[kind]));
  if (!all.empty()) summaries.push_back(summary_of("all", all));
  return summaries;
}

}  // namespace memwall
