#include "validate/published/fit_constants.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <iterator>
#include <utility>

namespace memwall {
namespace {

constexpr double kLeastGain = 1e-3, kLeastChange = 1e-3, kStep = 0.005;
constexpr std::size_t kPoints = 4;
constexpr double kSlowHost = 3;  // where the second descent begins

// What a constant may be: from the smallest to the largest multiple.
struct Range {
  double FrameworkConstants::*constant;
  double low, high;
};
constexpr Range kRanges[] = {{&FrameworkConstants::products, 0.85, 2.0},
                             {&FrameworkConstants::network, 0.15, 1.2},
                             {&FrameworkConstants::host, 0.5, 4.0}};

double rounded(double value) { return std::round(value * 1000) / 1000; }

double mean_error(const std::vector<double>& measured, const std::vector<double>& times) {
  double sum = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) sum += std::abs(std::log(times[i] / measured[i]));
  return sum / static_cast<double>(measured.size());
}

// Rows' step times at some values of one constant, the others fixed.
struct Sampled {
  std::array<double, kPoints> values{};  // ln
  std::array<std::vector<double>, kPoints> times;

  std::vector<double> at(double value) const {
    const double x = std::log(value);
    std::size_t above = 1;
    while (above + 1 < kPoints && values[above] < x) ++above;
    const double share = (x - values[above - 1]) / (values[above] - values[above - 1]);
    std::vector<double> between;
    for (std::size_t row = 0; row < times[0].size(); ++row)
      between.push_back(std::pow(times[above - 1][row], 1 - share) * std::pow(times[above][row], share));
    return between;
  }
};

bool moves(const std::vector<double>& a, const std::vector<double>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::abs(a[i] / b[i] - 1) > kLeastChange) return true;
  return false;
}

// Nothing where the constant moves no row.
bool sample(const StepTimes& step_times, const FrameworkConstants& base, const Range& range, Sampled& sampled) {
  const auto at = [&](std::size_t i) {
    FrameworkConstants tried = base;
    const double share = static_cast<double>(i) / (kPoints - 1);
    tried.*range.constant = rounded(range.low * std::pow(range.high / range.low, share));
    sampled.values[i] = std::log(tried.*range.constant);
    sampled.times[i] = step_times(tried);
  };
  at(0);
  at(kPoints - 1);
  if (!moves(sampled.times.front(), sampled.times.back())) return false;
  for (std::size_t i = 1; i + 1 < kPoints; ++i) at(i);
  return true;
}

double best_of(const Sampled& sampled, const std::vector<double>& measured, const Range& range) {
  double best = range.low, least = mean_error(measured, sampled.at(range.low));
  for (double value = range.low; value <= range.high; value *= 1 + kStep) {
    const double here = mean_error(measured, sampled.at(value));
    if (here < least) least = here, best = value;
  }
  return rounded(best);
}

}  // namespace

namespace {

// Takes the best of one range where that gains enough. False where the constant moves no row.
bool improve(const std::vector<double>& measured, const StepTimes& step_times, const Range& range,
             FittedConstants& fitted) {
  Sampled sampled;
  if (!sample(step_times, fitted.constants, range, sampled)) return false;
  FrameworkConstants tried = fitted.constants;
  tried.*range.constant = best_of(sampled, measured, range);
  const double error = mean_error(measured, step_times(tried));
  if (error > fitted.error - kLeastGain) return true;
  fitted.constants = tried;
  fitted.error = error;
  return true;
}

FittedConstants unfitted(const std::vector<double>& measured, const StepTimes& step_times,
                         const FrameworkConstants& from) {
  assert(!measured.empty());
  FittedConstants fitted;
  fitted.constants = from;
  fitted.rows = measured.size();
  fitted.before = fitted.error = mean_error(measured, step_times(from));
  return fitted;
}

FittedConstants descend(const std::vector<double>& measured, const StepTimes& step_times, std::size_t how_many,
                        const FrameworkConstants& from) {
  FittedConstants fitted = unfitted(measured, step_times, from);
  std::array<bool, std::size(kRanges)> idle{};
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t i = 0; i < std::min(how_many, std::size(kRanges)); ++i)
      idle[i] = idle[i] || !improve(measured, step_times, kRanges[i], fitted);
  return fitted;
}

}  // namespace

FittedConstants fit_constants(const std::vector<double>& measured, const StepTimes& step_times, std::size_t how_many,
                              const FrameworkConstants& from) {
  FittedConstants fitted = descend(measured, step_times, how_many, from);
  if (how_many < std::size(kRanges)) return fitted;
  FrameworkConstants slow_host = from;
  slow_host.host = kSlowHost;
  FittedConstants other = descend(measured, step_times, how_many, slow_host);
  if (other.error > fitted.error - kLeastGain) return fitted;
  other.before = fitted.before;
  return other;
}

namespace {

// The rows of one table on one GPU.
struct GpuRows {
  std::vector<PublishedCase> rows;
  FittedConstants fit{};
};

std::vector<double> measured_of(const std::vector<PublishedCase>& rows) {
  std::vector<double> measured;
  for (const PublishedCase& row : rows) measured.push_back(row.step_seconds);
  return measured;
}

std::vector<double> step_times_of(const std::vector<PublishedCase>& rows) {
  std::vector<double> times;
  for (const PublishedResult& r : predict(rows, false))
    if (r.metric == "step time") times.push_back(r.predicted);
  return times;
}

void fit_rows(GpuRows& gpu) {
  const auto step_times = [&](const FrameworkConstants& constants) {
    for (PublishedCase& row : gpu.rows) row.constants = constants;
    return step_times_of(gpu.rows);
  };
  const double before = gpu.fit.before;
  gpu.fit = fit_constants(measured_of(gpu.rows), step_times, (gpu.rows.size() + 1) / 2, gpu.fit.constants);
  if (before > 0) gpu.fit.before = before;
}

bool is_fitted(const PublishedCase& one) {
  return one.half == Half::fitted && one.step_seconds > 0 && predict(one, false).front().why_not.empty();
}

}  // namespace

std::vector<FittedRows> fit_tables(const std::vector<PublishedCase>& cases) {
  std::vector<std::string> tables;
  std::vector<std::vector<GpuRows>> gpus;
  for (const PublishedCase& one : cases) {
    if (!is_fitted(one)) continue;
    const auto table = std::find(tables.begin(), tables.end(), one.table) - tables.begin();
    if (static_cast<std::size_t>(table) == tables.size()) {
      tables.push_back(one.table);
      gpus.emplace_back();
    }
    std::vector<GpuRows>& of_table = gpus[static_cast<std::size_t>(table)];
    auto at = std::find_if(of_table.begin(), of_table.end(),
                           [&](const GpuRows& gpu) { return gpu.rows.front().gpu == one.gpu; });
    if (at == of_table.end()) at = of_table.insert(at, GpuRows());
    at->rows.push_back(one);
  }
  std::vector<FittedRows> fitted;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (GpuRows& gpu : gpus[i]) {
      fit_rows(gpu);
      fitted.push_back({tables[i], gpu.rows.front().gpu, gpu.fit});
    }
  }
  return fitted;
}

}  // namespace memwall
