#include "validate/report/pytorch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "sim/quantile.h"
#include "validate/report/tolerance.h"

namespace memwall {
namespace {

constexpr const char* kSame = "pytorch same kernels";
constexpr const char* kChanged = "pytorch changed kernels";

ValidationRow row_of(const std::string& machine, const PytorchCase& c, const std::string& metric,
                     const std::string& unit, double measured, double predicted) {
  ValidationRow row;
  row.rung = c.same_kernels ? kSame : kChanged;
  row.machine = machine;
  row.case_name = c.model + " " + c.variant;
  row.metric = metric;
  row.unit = unit;
  row.measured = measured;
  row.predicted = predicted;
  row.status = ValidationStatus::reported;
  row.date = c.date;
  return row;
}

// The aim's row: what was reached stands as `predicted`, and is `within` if it is at most the tolerance.
ValidationRow aim_row(const std::string& machine, const std::string& rung, const std::string& metric, double tolerance,
                      const std::vector<double>& errors, double quantile, const std::string& date) {
  ValidationRow row;
  row.rung = rung;
  row.machine = machine;
  row.case_name = errors.empty() ? "all" : fmt::format("all, {} figures", errors.size());
  row.metric = metric;
  row.unit = "share";
  row.tolerance = tolerance;
  row.date = date;
  if (errors.empty()) return row;  // not measured yet
  row.predicted = lower_quantile(errors, quantile);
  row.status = row.predicted <= tolerance ? ValidationStatus::within : ValidationStatus::outside;
  return row;
}

double relative_error(double measured, double predicted) { return std::abs(predicted / measured - 1); }

// Share of pairs of variants of one model that are predicted in the right order. Two whose measured times are
// within 2 % of each other are a tie: no order of theirs is wrong.
ValidationRow ranking_row(const std::string& machine, const std::vector<PytorchComparison>& comparisons,
                          const std::string& date) {
  constexpr double kTie = 0.02;
  std::size_t pairs = 0, right = 0;
  for (std::size_t i = 0; i < comparisons.size(); ++i)
    for (std::size_t j = i + 1; j < comparisons.size(); ++j) {
      const PytorchComparison &a = comparisons[i], &b = comparisons[j];
      if (a.measured.model != b.measured.model || a.measured.same_kernels != b.measured.same_kernels) continue;
      if (relative_error(a.measured.step, b.measured.step) <= kTie) continue;
      ++pairs;
      if ((a.measured.step < b.measured.step) == (a.predicted.step < b.predicted.step)) ++right;
    }
  ValidationRow row;
  row.rung = kSame;
  row.machine = machine;
  row.case_name = pairs == 0 ? "all" : fmt::format("all, {} pairs", pairs);
  row.metric = "order of variants by step time";
  row.unit = "share";
  row.tolerance = tolerance_of(ToleranceKind::ranking, "cuda");
  if (pairs == 0) return row;  // not measured yet
  row.date = date;
  row.measured = 1;
  row.predicted = static_cast<double>(right) / static_cast<double>(pairs);
  judge(row, row.tolerance);
  return row;
}

void append_figures(std::vector<ValidationRow>& rows, const std::string& machine, const PytorchComparison& c,
                    const PytorchComparison* baseline) {
  const PytorchCase& m = c.measured;
  const PytorchPrediction& p = c.predicted;
  rows.push_back(row_of(machine, m, "step time", "s", m.step, p.step));
  if (baseline != nullptr && m.variant != "baseline")
    rows.push_back(row_of(machine, m, "step time / baseline", "share", m.step / baseline->measured.step,
                          p.step / baseline->predicted.step));
  rows.push_back(row_of(machine, m, "forward", "s", m.forward, p.forward));
  rows.push_back(row_of(machine, m, "backward", "s", m.backward, p.backward));
  rows.push_back(row_of(machine, m, "optimizer", "s", m.optimizer, p.optimizer));
  rows.push_back(row_of(machine, m, "peak allocated", "B", static_cast<double>(m.peak_allocated),
                        static_cast<double>(p.peak_allocated)));
  rows.push_back(row_of(machine, m, "peak reserved", "B", static_cast<double>(m.peak_reserved),
                        static_cast<double>(p.peak_reserved)));
}

const PytorchComparison* baseline_of(const std::vector<PytorchComparison>& comparisons, const std::string& model) {
  for (const PytorchComparison& c : comparisons)
    if (c.measured.model == model && c.measured.variant == "baseline") return &c;
  return nullptr;
}

// A variant that was measured and that nothing predicts: the table says so.
ValidationRow unpredicted(const std::string& machine, const PytorchCase& c, const std::string& why) {
  ValidationRow row = row_of(machine, c, "step time, not predicted: " + why, "s", c.step, 0);
  return row;
}

}  // namespace

std::vector<ValidationRow> pytorch_rows(const std::string& machine, const std::vector<PytorchComparison>& comparisons) {
  std::vector<ValidationRow> rows;
  std::vector<double> same_time, same_peak, changed_time;
  std::string date;
  for (const PytorchComparison& c : comparisons) {
    append_figures(rows, machine, c, baseline_of(comparisons, c.measured.model));
    date = std::max(date, c.measured.date);
    const double error = relative_error(c.measured.step, c.predicted.step);
    (c.measured.same_kernels ? same_time : changed_time).push_back(error);
    if (c.measured.same_kernels && c.measured.peak_allocated > 0)
      same_peak.push_back(relative_error(static_cast<double>(c.measured.peak_allocated),
                                         static_cast<double>(c.predicted.peak_allocated)));
  }
  const PytorchAims aims;
  rows.push_back(aim_row(machine, kSame, "step time, median error", aims.same_median, same_time, 0.5, date));
  rows.push_back(
      aim_row(machine, kSame, "step time, 90th percentile of the error", aims.same_p90, same_time, 0.9, date));
  rows.push_back(aim_row(machine, kSame, "peak allocated, median error", aims.same_peak, same_peak, 0.5, date));
  rows.push_back(aim_row(machine, kChanged, "step time, median error", aims.changed_median, changed_time, 0.5, date));
  rows.push_back(ranking_row(machine, comparisons, date));
  return rows;
}

std::vector<ValidationRow> validate_pytorch(const std::filesystem::path& folder, const ValidationSettings& settings) {
  const std::string name = folder.filename().string();
  const std::filesystem::path measured = folder / "pytorch" / "results.csv";
  if (!std::filesystem::exists(measured)) return pytorch_rows(name, {});
  const Machine machine = load_machine((folder / "machine.textproto").string(), settings.machine_settings);
  std::vector<PytorchComparison> comparisons;
  std::vector<ValidationRow> others;
  std::map<std::string, std::optional<SharedTrace>> baselines;
  for (const PytorchCase& c : read_pytorch_cases(measured)) {
    if (!c.measured() || c.variant.starts_with("capture=")) continue;
    const auto policies = policies_of_variant(c.variant);
    const std::filesystem::path captures = folder / "pytorch" / "baseline";
    if (!policies) {
      others.push_back(unpredicted(name, c, "no policy stands for it yet"));
    } else if (!std::filesystem::exists(captures / (c.model + ".kineto.json.gz"))) {
      others.push_back(unpredicted(name, c, "its baseline was not captured"));
    } else {
      std::optional<SharedTrace>& baseline = baselines[c.model];
      if (!baseline) baseline = captured_baseline(captures, c.model, machine);
      try {
        comparisons.push_back({c, predict(*baseline, machine, *policies)});
      } catch (const UsageError& error) {
        others.push_back(unpredicted(name, c, error.what()));
      }
    }
  }
  std::vector<ValidationRow> rows = pytorch_rows(name, comparisons);
  rows.insert(rows.end(), others.begin(), others.end());
  return rows;
}

}  // namespace memwall
