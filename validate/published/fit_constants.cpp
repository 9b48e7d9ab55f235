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

// What a constant may be: from the smallest to the largest multiple.
struct Range {
  double FrameworkConstants::*constant;
  double low, high;
};
constexpr Range kRanges[] = {{&FrameworkConstants::kernels, 0.8, 1.8},
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
  double best = 1, least = mean_error(measured, sampled.at(1));
  for (double value = range.low; value <= range.high; value *= 1 + kStep) {
    const double here = mean_error(measured, sampled.at(value));
    if (here < least) least = here, best = value;
  }
  return rounded(best);
}

}  // namespace

FittedConstants fit_constants(const std::vector<double>& measured, const StepTimes& step_times, std::size_t how_many) {
  assert(!measured.empty());
  FittedConstants fitted;
  fitted.rows = measured.size();
  fitted.before = fitted.error = mean_error(measured, step_times(fitted.constants));
  std::array<bool, std::size(kRanges)> idle{};
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t i = 0; i < std::min(how_many, std::size(kRanges)); ++i) {
      Sampled sampled;
      if (idle[i]) continue;
      if (!sample(step_times, fitted.constants, kRanges[i], sampled)) {
        idle[i] = true;
        continue;
      }
      FrameworkConstants tried = fitted.constants;
      tried.*kRanges[i].constant = best_of(sampled, measured, kRanges[i]);
      const double error = mean_error(measured, step_times(tried));
      if (error > fitted.error - kLeastGain) continue;
      fitted.constants = tried;
      fitted.error = error;
    }
  return fitted;
}

namespace {

FittedConstants fit_rows(std::vector<PublishedCase> rows) {
  std::vector<double> measured;
  for (const PublishedCase& row : rows) measured.push_back(row.step_seconds);
  const auto step_times = [&](const FrameworkConstants& constants) {
    for (PublishedCase& row : rows) row.constants = constants;
    std::vector<double> times;
    for (const PublishedResult& r : predict(rows))
      if (r.metric == "step time") times.push_back(r.predicted);
    return times;
  };
  return fit_constants(measured, step_times, (rows.size() + 1) / 2);
}

bool is_fitted(const PublishedCase& one) {
  return one.half == Half::fitted && one.step_seconds > 0 && predict(one).front().why_not.empty();
}

}  // namespace

std::vector<FittedRows> fit_tables(const std::vector<PublishedCase>& cases) {
  std::vector<FittedRows> fitted;
  std::vector<std::vector<PublishedCase>> rows;
  for (const PublishedCase& one : cases) {
    if (!is_fitted(one)) continue;
    const auto at = std::find_if(fitted.begin(), fitted.end(),
                                 [&](const FittedRows& f) { return f.table == one.table && f.gpu == one.gpu; });
    const auto index = static_cast<std::size_t>(at - fitted.begin());
    if (at == fitted.end()) {
      fitted.push_back({one.table, one.gpu, {}});
      rows.emplace_back();
    }
    rows[index].push_back(one);
  }
  for (std::size_t i = 0; i < fitted.size(); ++i) fitted[i].fit = fit_rows(std::move(rows[i]));
  return fitted;
}

}  // namespace memwall
