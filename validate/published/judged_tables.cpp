#include "validate/published/judged_tables.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "sim/quantile.h"

namespace memwall {
namespace {

bool is_step_time(const PublishedResult& r) { return r.metric == "step time" && r.why_not.empty(); }

// Ranks from 1; equal values share the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    const double shared = static_cast<double>(first + 1 + end) / 2;
    for (; first < end; ++first) ranks[order[first]] = shared;
  }
  return ranks;
}

struct Pairs {
  std::vector<double> measured, predicted;
  void add(const PublishedResult& r) {
    measured.push_back(r.measured);
    predicted.push_back(r.predicted);
  }
};

JudgedErrors errors_of(const std::vector<PublishedResult>& results, const std::vector<std::optional<double>>& null,
                       const std::string& table, Half half) {
  std::vector<double> errors, null_errors;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const PublishedResult& r = results[i];
    if (r.table != table || r.half != half || !is_step_time(r)) continue;
    errors.push_back(std::abs(r.error()));
    if (null[i]) null_errors.push_back(std::abs(*null[i] / r.measured - 1));
  }
  JudgedErrors all;
  all.rows = errors.size();
  if (!errors.empty()) {
    all.median = median(errors);
    all.p90 = lower_quantile(errors, 0.9);
  }
  if (!null_errors.empty()) all.null_median = median(null_errors);
  return all;
}

// Utilization of the fitted rows of a table: of one GPU, or of all where `gpu` is null.
std::optional<double> fitted_utilization(const std::vector<PublishedResult>& results, const std::string& table,
                                         const std::string* gpu) {
  std::vector<double> utilizations;
  for (const PublishedResult& r : results)
    if (r.table == table && r.half == Half::fitted && is_step_time(r) && (gpu == nullptr || r.gpu == *gpu))
      utilizations.push_back(r.seconds_at_peak / r.measured);
  if (utilizations.empty()) return std::nullopt;
  return median(utilizations);
}

void count_fitted(const PublishedResult& r, std::vector<FittedGpu>& all) {
  auto at = std::find_if(all.begin(), all.end(), [&](const FittedGpu& one) { return one.gpu == r.gpu; });
  if (at == all.end()) at = all.insert(at, {r.gpu, 0, fitted_constants(r.table, r.gpu)});
  ++at->rows;
}

JudgedTable summary_of(const std::vector<PublishedResult>& results, const std::vector<std::optional<double>>& null,
                       const PublishedResult& first) {
  JudgedTable t;
  t.table = first.table;
  t.protocol = first.protocol;
  t.fitted = errors_of(results, null, t.table, Half::fitted);
  t.judged = errors_of(results, null, t.table, Half::judged);
  const std::string metric = t.protocol == Protocol::order ? "rate" : "step time";
  Pairs judged, all;
  for (const PublishedResult& r : results) {
    if (r.table != t.table) continue;
    if (r.metric == "fits" && r.why_not.empty()) {
      ++t.fits_told;
      if (r.measured == r.predicted) ++t.fits_right;
    }
    if (r.half == Half::fitted && is_step_time(r)) count_fitted(r, t.constants);
    if (r.metric != metric) continue;
    if (!r.why_not.empty()) {
      ++t.not_predicted;
      continue;
    }
    all.add(r);
    if (r.half != Half::fitted) judged.add(r);
  }
  t.order = rank_correlation(judged.measured, judged.predicted);
  t.order_of_all = rank_correlation(all.measured, all.predicted);
  return t;
}

}  // namespace

void halve(std::vector<PublishedCase>& cases) {
  const auto usable = static_cast<std::size_t>(
      std::count_if(cases.begin(), cases.end(), [](const PublishedCase& c) { return c.why_not.empty(); }));
  const std::size_t fitted = usable < kFewestHalved ? 0 : usable / 2;
  std::size_t at = 0;
  for (PublishedCase& c : cases) c.half = !c.why_not.empty() ? Half::none : at++ < fitted ? Half::fitted : Half::judged;
}

std::optional<double> rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  assert(a.size() == b.size());
  if (a.size() < 2) return std::nullopt;
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = (static_cast<double>(a.size()) + 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

std::vector<std::optional<double>> null_seconds(const std::vector<PublishedResult>& results) {
  std::vector<std::optional<double>> all;
  for (const PublishedResult& r : results) {
    std::optional<double> utilization;
    if (r.half != Half::none && is_step_time(r)) {
      utilization = fitted_utilization(results, r.table, &r.gpu);
      if (!utilization) utilization = fitted_utilization(results, r.table, nullptr);
    }
    all.push_back(utilization ? std::optional(r.seconds_at_peak / *utilization) : std::nullopt);
  }
  return all;
}

std::vector<JudgedTable> judged_tables(const std::vector<PublishedResult>& results) {
  std::vector<JudgedTable> all;
  const std::vector<std::optional<double>> null = null_seconds(results);
  for (const PublishedResult& r : results) {
    if (r.protocol == Protocol::unfitted) continue;
    if (std::any_of(all.begin(), all.end(), [&](const JudgedTable& t) { return t.table == r.table; })) continue;
    all.push_back(summary_of(results, null, r));
  }
  return all;
}

}  // namespace memwall
