// gpu-benches: streaming kernels at full occupancy (gpubenches_stream.csv) and small kernels
// (gpubenches_small_kernels.csv) on several GPUs.
//
// Of streaming, the best of all occupancies; the machine files are fitted to `scale` alone. Of small kernels, plain
// launches and those with a grid-wide barrier; the machine files are fitted to the variant in a CUDA graph, which is
// left out here. Volumes differ between GPUs by a few per cent: times are interpolated.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "validate/transfer/transfer_tables.h"

namespace memwall {
namespace {

const std::map<std::string, std::string> kMachinesOfGpuBenches{{"v100", "v100-sxm2-16gb"},   {"a100_40", "a100-sxm-40gb"},
                                                   {"a100_80", "a100-sxm-80gb"}, {"h100_pcie", "h100-pcie-80gb"},
                                                   {"h200", "h200-sxm-141gb"},   {"gh200", "gh200-480gb"},
                                                   {"mi300x", "mi300x"}};

constexpr double kStreamed = 4e9;  // bytes: far beyond every L2

double number_or_zero(const CsvTableRow& row, const std::string& column) {
  const std::string& text = row.text(column);
  return text.empty() || text == "0" || text == "0.0" ? 0 : row.number(column);
}

// Seconds at so many bytes, linear between neighbours. REQUIRES: bytes within the table's.
double interpolated(const std::map<double, double>& seconds, double bytes) {
  const auto above = seconds.lower_bound(bytes);
  if (above->first == bytes) return above->second;
  const auto below = std::prev(above);
  const double share = (bytes - below->first) / (above->first - below->first);
  return below->second + share * (above->second - below->second);
}

}  // namespace

std::vector<TransferRow> stream_rows(const std::vector<CsvTableRow>& table) {
  const char* kernels[] = {"init", "read", "scale", "triad", "3pt", "5pt"};
  std::map<std::string, std::map<std::string, double>> best;  // GB/s by kernel and GPU
  for (const CsvTableRow& row : table)
    if (kMachinesOfGpuBenches.contains(row.text("gpu")))
      for (const char* kernel : kernels) {
        double& rate = best[kernel][row.text("gpu")];
        rate = std::max(rate, number_or_zero(row, kernel));
      }
  std::vector<TransferRow> rows;
  for (const char* kernel : kernels)
    for (const auto& [gpu, rate] : best[kernel])
      for (const auto& [other, other_rate] : best[kernel]) {
        if (gpu >= other || rate <= 0 || other_rate <= 0) continue;
        TransferRow row;
        row.table = "gpubenches_stream";
        row.name = fmt::format("{}, {} and {}", kernel, gpu, other);
        row.kind = "memory";
        row.from = kMachinesOfGpuBenches.at(gpu);
        row.to = kMachinesOfGpuBenches.at(other);
        row.work = {kernel_work(OperatorClass::memory, DataType::fp64, Phase::forward, kStreamed)};
        row.measured_from = kStreamed / (rate * 1e9);
        row.measured_to = kStreamed / (other_rate * 1e9);
        row.calibrated = std::string(kernel) == "scale";
        add_both_ways(rows, row);
      }
  return rows;
}

std::vector<TransferRow> small_kernel_rows(const std::vector<CsvTableRow>& table) {
  std::map<std::string, std::map<double, double>> seconds;  // by variant and bytes
  for (const CsvTableRow& row : table) {
    double rate = 0;
    for (int c = 1; c <= 6; ++c) rate = std::max(rate, number_or_zero(row, fmt::format("c{}", c)));
    const double bytes = 16 * row.number("n_elems");
    if (rate > 0) seconds[row.text("gpu_variant")][bytes] = bytes / (rate * 1e9);
  }
  constexpr int kEvery = 8;  // sizes stand 7 % apart: neighbours say the same
  std::vector<TransferRow> rows;
  for (const char* variant : {"", "_gsync"}) {
    const auto &old = seconds[fmt::format("a100_80{}", variant)], &now = seconds[fmt::format("h200{}", variant)];
    int count = 0;
    for (const auto& [bytes, time] : old) {
      if (now.empty() || bytes < now.begin()->first || bytes > now.rbegin()->first || count++ % kEvery != 0) continue;
      TransferRow row;
      row.table = "gpubenches_small_kernels";
      row.name = fmt::format("{}, {:.0f} kB", *variant != 0 ? "with a grid-wide barrier" : "plain", bytes / 1000);
      row.kind = "memory, small";
      row.from = kMachinesOfGpuBenches.at("a100_80");
      row.to = kMachinesOfGpuBenches.at("h200");
      row.work = {kernel_work(OperatorClass::memory, DataType::fp64, Phase::forward, bytes)};
      row.measured_from = time;
      row.measured_to = interpolated(now, bytes);
      add_both_ways(rows, row);
    }
  }
  return rows;
}

}  // namespace memwall
