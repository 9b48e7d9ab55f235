// Liger-Kernel's benchmarks: A100-SXM4-80GB (liger_kernel_microbench_a100_h100_b200.csv, which in spite of its name has
// rows of A100 alone) and H100 NVL (liger_h100_nvl.csv beside this file).
//
// Bytes follow from the settings. Fused kernels read and write each tensor once; what the eager provider runs is
// several kernels, and their number and bytes are those of the operators that transformers' modules call. Versions of
// Liger and PyTorch differ between the GPUs. Left out: rows that measure the host, of which the next size takes less
// than 1.25 times as long on one of the GPUs; and those that begin less than 20 us long.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "validate/transfer/transfer_tables.h"

namespace memwall {
namespace {

constexpr double kGrowth = 1.25;

using Series = std::tuple<std::string, std::string, std::string, std::string>;  // kernel, provider, mode, x_name
using Times = std::map<double, double>;                                         // seconds by size

std::map<Series, Times> series_of(const std::vector<CsvTableRow>& rows, const char* time) {
  std::map<Series, Times> all;
  for (const CsvTableRow& row : rows) {
    if (row.has("metric_name") &&
        (row.text("metric_name") != "speed" || row.text("gpu_name") != "NVIDIA A100-SXM4-80GB"))
      continue;
    all[{row.text("kernel_name"), row.text("kernel_provider"), row.text("kernel_operation_mode"), row.text("x_name")}]
       [row.number("x_value")] = row.number(time) * 1e-3;
  }
  return all;
}

// Does the time at this size follow from the size? The last of a series does if the one before it grew to it.
bool grows(const Times& times, double x) {
  auto at = times.find(x);
  const auto next = std::next(at);
  if (next != times.end()) return next->second >= kGrowth * at->second;
  return at != times.begin() && at->second >= kGrowth * std::prev(at)->second;
}

bool forward(const std::string& mode) { return mode == "forward" || mode == "full"; }
bool backward(const std::string& mode) { return mode == "backward" || mode == "full"; }
std::int64_t whole(double value) { return static_cast<std::int64_t>(value); }

void add_passes(std::vector<WorkPart>& parts, const std::string& mode, const WorkPart& ahead, const WorkPart& back) {
  if (forward(mode)) parts.push_back(ahead);
  if (backward(mode)) parts.push_back(back);
}

std::vector<WorkPart> norm_work(bool fused, const std::string& mode, double rows, double width, DataType type) {
  const double elements = rows * width;
  const Shape shape{whole(rows), whole(width)};
  std::vector<WorkPart> parts;
  const auto c = OperatorClass::normalization;
  const double size = static_cast<double>(bytes_of(type));
  if (fused)  // forward x to y; backward dy and x to dx
    add_passes(parts, mode, kernel_work(c, type, Phase::forward, 2 * size * elements, shape),
               kernel_work(c, type, Phase::backward, 3 * size * elements, shape));
  else  // LlamaRMSNorm: to fp32, pow, mean, rsqrt, two products, back to bf16; its backward about two and a half times
        // it
    add_passes(parts, mode,
               kernel_work(OperatorClass::elementwise, DataType::fp32, Phase::forward, 38 * elements, {}, 6),
               kernel_work(OperatorClass::elementwise, DataType::fp32, Phase::backward, 95 * elements, {}, 15));
  return parts;
}

// Queries of 32 heads and keys of 8: a quarter as many elements.
std::vector<WorkPart> rope_work(bool fused, const std::string& mode, double tokens, double hidden) {
  const double elements = tokens * hidden * 1.25;
  std::vector<WorkPart> parts;
  const auto c = OperatorClass::elementwise;
  const auto one = [&](Phase phase) {
    return fused ? kernel_work(c, DataType::bf16, phase, 4 * elements)
                 : kernel_work(c, DataType::bf16, phase, 24 * elements, {}, 10);
  };
  add_passes(parts, mode, one(Phase::forward), one(Phase::backward));
  return parts;
}

std::vector<WorkPart> cross_entropy_work(bool fused, const std::string& mode, double vocabulary) {
  const double tokens = 8 * 2048, elements = tokens * vocabulary;
  const Shape shape{whole(tokens), whole(vocabulary)};
  std::vector<WorkPart> parts;
  const auto c = OperatorClass::reduction;
  if (fused)  // the forward reads twice and writes the gradient in place; the backward multiplies it
    add_passes(parts, mode, kernel_work(c, DataType::fp32, Phase::forward, 12 * elements, shape),
               kernel_work(OperatorClass::elementwise, DataType::fp32, Phase::backward, 8 * elements));
  else
    add_passes(parts, mode, kernel_work(c, DataType::fp32, Phase::forward, 8 * elements, shape),
               kernel_work(c, DataType::fp32, Phase::backward, 16 * elements, shape));
  return parts;
}

// Three products forward, twice as many backward, activations between them.
std::vector<WorkPart> mlp_work(double tokens) {
  const std::int64_t t = whole(tokens), hidden = 4096, inner = 11008;
  std::vector<WorkPart> parts;
  const auto product = [&](Phase phase, std::int64_t m, std::int64_t n, std::int64_t k) {
    parts.push_back(kernel_work(OperatorClass::gemm, DataType::bf16, phase, 0, {1, m, n, k}));
    parts.back().op.flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  };
  for (int i = 0; i < 2; ++i) product(Phase::forward, t, inner, hidden);
  product(Phase::forward, t, hidden, inner);
  for (int i = 0; i < 2; ++i) {
    product(Phase::backward, t, hidden, inner);
    product(Phase::backward, hidden, inner, t);
  }
  product(Phase::backward, t, inner, hidden);
  product(Phase::backward, inner, hidden, t);
  parts.push_back(kernel_work(OperatorClass::elementwise, DataType::bf16, Phase::forward,
                              26.0 * tokens * static_cast<double>(inner), {}, 5));
  return parts;
}

std::vector<WorkPart> work_of(const Series& s, double x) {
  const auto& [kernel, provider, mode, axis] = s;
  const bool fused = provider == "liger";
  if (kernel == "rms_norm") return norm_work(fused, mode, 2048, x, DataType::bf16);
  if (kernel == "layer_norm") return norm_work(true, mode, 4096, x, DataType::fp32);
  if (kernel == "rope") return axis == "T" ? rope_work(fused, mode, x, 8192) : rope_work(fused, mode, 2048, x);
  if (kernel == "cross_entropy") return cross_entropy_work(fused, mode, x);
  if (kernel == "geglu") return mlp_work(8 * x);
  return {};
}

}  // namespace

std::vector<TransferRow> liger_rows(const std::vector<CsvTableRow>& a100, const std::vector<CsvTableRow>& h100) {
  const std::map<Series, Times> old = series_of(a100, "y_value_50"), now = series_of(h100, "ms");
  std::vector<TransferRow> rows;
  for (const auto& [series, times] : now) {
    const auto before = old.find(series);
    if (before == old.end()) continue;
    for (const auto& [x, seconds] : times) {
      const auto at = before->second.find(x);
      if (at == before->second.end() || !grows(times, x) || !grows(before->second, x)) continue;
      TransferRow row;
      row.work = work_of(series, x);
      if (row.work.empty()) continue;
      const auto& [kernel, provider, mode, axis] = series;
      row.table = "liger_kernel_microbench_a100_h100_b200";
      row.name = fmt::format("{} of {}, {}, {} {:.0f}", kernel, provider, mode, axis, x);
      row.kind = to_string(row.work.front().op.operator_class);
      if (row.kind == "gemm") row.kind = "gemm, 400 W";  // the NVL card's limit, which no machine file knows of
      row.from = "a100-sxm-80gb";
      row.to = "h100-sxm-80gb";
      // The NVL card: 94 GB of HBM3 at 3.9 TB/s and lower clocks (NVIDIA H100 data sheet, H100 NVL).
      row.to_settings = {"gpu.hbm.bandwidth=3.9TB/s", "gpu.peak.bf16.rate=835TFLOP/s", "gpu.peak.fp32.rate=60TFLOP/s"};
      row.measured_from = at->second;
      row.measured_to = seconds;
      add_both_ways(rows, row);
    }
  }
  return rows;
}

}  // namespace memwall
