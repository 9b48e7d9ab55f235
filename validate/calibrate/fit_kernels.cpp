// Kernels bound by memory: what each class reaches of the measured HBM bandwidth, and what the smallest costs.
//
// A base's shares are relative to a data sheet's bandwidth, a calibrated machine's to the measured one. The
// shares of classes that nobody measured keep their proportion to elementwise kernels, or, where these were not
// measured either, to what hbm_triad reached.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/hw/kernel_cost.h"
#include "sim/error.h"
#include "sim/quantile.h"
#include "validate/calibrate/fitting.h"
#include "validate/calibrate/measured_rows.h"

namespace memwall {
namespace {

struct KernelClass {
  const char* name;
  OperatorClass operator_class;
  std::vector<const char*> benchmarks;
};
const std::vector<KernelClass>& measured_classes() {
  // An importer counts softmax among the reductions (models/workload).
  static const std::vector<KernelClass> classes{
      {"elementwise", OperatorClass::elementwise, {"kernel_elementwise"}},
      {"normalization", OperatorClass::normalization, {"kernel_normalization"}},
      {"reduction", OperatorClass::reduction, {"kernel_softmax", "kernel_reduction"}},
      {"optimizer", OperatorClass::optimizer, {"kernel_optimizer"}},
  };
  return classes;
}

std::string path_of(const std::string& class_name, const char* number) {
  return "gpu.efficiency." + class_name + "." + number;
}

std::vector<Measurement> rows_of(const Fitting& f, const KernelClass& c) {
  std::vector<Measurement> rows;
  for (const char* benchmark : c.benchmarks) {
    const std::vector<Measurement> some = time_rows(f.set, benchmark);
    times_by_size(some);  // refuses times that fall
    rows.insert(rows.end(), some.begin(), some.end());
  }
  return rows;
}

std::string sentence_of(const KernelClass& c, const std::vector<Measurement>& rows) {
  std::string text;
  for (const char* benchmark : c.benchmarks) {
    std::vector<Measurement> some;
    for (const Measurement& row : rows)
      if (row.benchmark == benchmark) some.push_back(row);
    if (!some.empty()) text += (text.empty() ? "" : "; ") + sizes_sentence(some);
  }
  return text;
}

std::vector<PricedRow> priced(const std::vector<Measurement>& rows, OperatorClass operator_class) {
  std::vector<PricedRow> result;
  for (const Measurement& row : rows) {
    Op op;
    op.kind = OpKind::kernel;
    op.operator_class = operator_class;
    op.data_type = DataType::fp32;
    op.bytes = std::llround(traffic_of(row));
    op.flops = std::isfinite(row.flops) && row.flops > 0 && row.flops < 1e24 ? row.flops : 0;
    result.push_back({row, [op](const Machine&, const Pricer& pricer) { return to_seconds(pricer.kernel(op)); }});
  }
  return result;
}

// Those that HBM decides: of four times L2, or the largest if L2 does not hold it.
std::vector<Measurement> large(const Fitting& f, const std::vector<Measurement>& rows) {
  const double l2 = f.machine_file.number("gpu.l2_capacity");
  double largest = 0;
  for (const Measurement& row : rows) largest = std::max(largest, traffic_of(row));
  std::vector<Measurement> kept;
  for (const Measurement& row : rows)
    if (traffic_of(row) >= l2 && traffic_of(row) >= std::min(4 * l2, largest)) kept.push_back(row);
  return kept;
}

// As models/hw/kernel_cost.h has it.
double seconds_in_memory(const Fitting& f, double bytes, double share) {
  const double l2 = f.machine_file.number("gpu.l2_capacity");
  if (l2 > 0 && f.machine_file.has("gpu.residency.kept")) {
    const double kept = f.machine_file.number("gpu.residency.kept"), lost = f.machine_file.number("gpu.residency.lost");
    const double gone = std::clamp((bytes / l2 - kept) / (lost - kept), 0.0, 1.0) * bytes;
    return (bytes - gone) /
               (f.machine_file.number("gpu.l2_bandwidth") * f.machine_file.number("gpu.residency.streaming_share")) +
           gone / (f.machine_file.number("gpu.hbm.bandwidth") * share);
  }
  const double missing = l2 > 0 ? bytes * std::min(1.0, bytes / l2) : bytes;
  return std::max(bytes / f.machine_file.number("gpu.l2_bandwidth"),
                  missing / (f.machine_file.number("gpu.hbm.bandwidth") * share));
}

struct ClassFit {
  double share = 1, fixed = 0;
  bool fixed_known = false;
};

ClassFit fit_of(const Fitting& f, const std::vector<Measurement>& rows, const std::vector<Measurement>& largest,
                double base_fixed) {
  const double hbm = f.machine_file.number("gpu.hbm.bandwidth");
  const Measurement& smallest =
      *std::min_element(rows.begin(), rows.end(),
                        [](const Measurement& a, const Measurement& b) { return traffic_of(a) < traffic_of(b); });
  ClassFit fit{f.machine_file.number("gpu.efficiency.memory.memory_share"), std::min(base_fixed, 0.5 * smallest.median),
               false};
  for (int round = 0; round < 20; ++round) {
    std::vector<double> shares;
    for (const Measurement& row : largest)
      shares.push_back(std::min(1.0, traffic_of(row) / (std::max(row.median - fit.fixed, 0.5 * row.median) * hbm)));
    if (!shares.empty()) fit.share = median(shares);
    const double moving = seconds_in_memory(f, traffic_of(smallest), fit.share);
    const double left = std::max(0.0, smallest.median - moving);
    fit.fixed_known = moving <= 0.5 * smallest.median || left < base_fixed;
    fit.fixed = fit.fixed_known ? left : base_fixed;
  }
  return fit;
}

// A kernel's arithmetic must not be priced above what the whole kernel took.
void fit_arithmetic(Fitting& f, const KernelClass& c, const std::vector<Measurement>& largest, double fixed,
                    const std::vector<PricedRow>& explained) {
  const double peak = peak_flops(f.base.gpu, DataType::fp32, c.operator_class);
  const double known = f.machine_file.number("gpu.peak.fp32.rate", peak);
  double least = 0;
  for (const Measurement& row : largest)
    if (row.flops > 0 && std::isfinite(row.flops))
      least = std::max(least, row.flops / (std::max(row.median - fixed, 0.5 * row.median) * known));
  const std::string path = path_of(c.name, "compute_share");
  if (least <= f.machine_file.number(path, 1)) return;
  f.fit(path, plain_text(std::min(1.0, least)), fmt::format("at least, {}", sentence_of(c, largest)), explained);
}

void fit_class(Fitting& f, const KernelClass& c) {
  const std::vector<Measurement> rows = rows_of(f, c);
  if (rows.empty()) return;
  f.require_class(c.operator_class);
  const std::vector<Measurement> largest = large(f, rows);
  const ClassFit fit = fit_of(f, rows, largest, f.machine_file.number(path_of(c.name, "fixed")));
  const std::vector<PricedRow> explained = priced(rows, c.operator_class);
  if (!largest.empty())
    f.fit(path_of(c.name, "memory_share"), plain_text(fit.share), sentence_of(c, largest),
          priced(largest, c.operator_class));
  if (fit.fixed_known) f.fit(path_of(c.name, "fixed"), time_text(fit.fixed), sentence_of(c, rows), explained);
  fit_arithmetic(f, c, largest, fit.fixed, explained);
}

// No kernel is faster than its memory: what one reached, HBM has.
void lift_hbm(Fitting& f) {
  const double hbm = f.machine_file.number("gpu.hbm.bandwidth");
  for (const KernelClass& c : measured_classes()) {
    const std::vector<Measurement> rows = rows_of(f, c);
    if (rows.empty()) continue;
    const std::vector<Measurement> largest = large(f, rows);
    if (largest.empty()) continue;
    std::vector<double> rates;
    const double fixed = f.machine_file.number(path_of(c.name, "fixed"), 0);
    for (const Measurement& row : largest)
      rates.push_back(traffic_of(row) / std::max(row.median - fixed, 0.5 * row.median));
    const double rate = median(rates);
    if (rate > 1.5 * hbm)
      throw InputError(fmt::format("{}: {} are more than the memory carries, {} by the hbm benchmarks; expected less.",
                                   row_name(largest.front()), rate_text(rate), rate_text(hbm)));
    f.require_bandwidth("gpu.hbm.bandwidth", rate, largest.front().benchmark);
  }
}

bool was_fitted(const Fitting& f, const std::string& path) {
  return std::any_of(f.numbers.begin(), f.numbers.end(),
                     [&](const FittedNumber& n) { return n.path == path && n.in_source; });
}

// The classes that nobody measured.
void carry_over(Fitting& f) {
  const std::string elementwise = path_of("elementwise", "memory_share");
  double reference = efficiency_of(f.base.gpu, OperatorClass::memory).memory;
  double reached = f.machine_file.number(path_of("memory", "memory_share"));
  std::string whose = "streaming kernels";
  if (was_fitted(f, elementwise)) {
    reference = efficiency_of(f.base.gpu, OperatorClass::elementwise).memory;
    reached = f.machine_file.number(elementwise);
    whose = "elementwise kernels";
  }
  const double products = f.machine_file.number(path_of("gemm", "compute_share"), 1);
  for (const KernelEfficiency& e : f.base.gpu.efficiencies) {
    const std::string name(to_string(e.operator_class));
    const std::string share = path_of(name, "memory_share"), compute = path_of(name, "compute_share");
    if (!f.machine_file.has(share)) continue;
    if (!was_fitted(f, share))
      f.machine_file.set(share, plain_text(std::min(1.0, reached * e.memory / reference)),
                         fmt::format("not measured; in proportion to {} as in {} ({} to {})", whose, f.base_name,
                                     plain_text(e.memory), plain_text(reference)));
    if (const std::string backward = path_of(name, "backward_share"); f.machine_file.has(backward)) {
      const double now = f.machine_file.number(share);
      f.machine_file.set(backward, plain_text(std::min(1.0, e.backward_memory * now / e.memory)),
                         fmt::format("not measured; in proportion to the forward as in {}", f.base_name));
    }
    // On the host back end one loop does the arithmetic of every class.
    if (!f.host) continue;
    if (!was_fitted(f, path_of(name, "fixed")) && was_fitted(f, path_of("elementwise", "fixed")))
      f.machine_file.set(path_of(name, "fixed"), time_text(f.machine_file.number(path_of("elementwise", "fixed"))),
                         "not measured; as elementwise: the host back end has one loop for every class");
    if (!was_fitted(f, compute))
      f.machine_file.set(compute, plain_text(products),
                         "not measured; as gemm: the host back end has one loop for every class");
  }
}

}  // namespace

void fit_kernels(Fitting& f) {
  lift_hbm(f);
  for (const KernelClass& c : measured_classes()) fit_class(f, c);
  carry_over(f);
}

}  // namespace memwall
