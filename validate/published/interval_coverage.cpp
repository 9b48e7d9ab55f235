#include "validate/published/interval_coverage.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "sim/quantile.h"

namespace memwall {
namespace {

constexpr double kDeviationsOf80Percent = 1.2816;

bool counts(const PublishedResult& r) {
  return r.metric == "step time" && r.why_not.empty() && r.half != Half::fitted && r.high > r.low && r.low > 0 && r.job;
}

double half_width(const PublishedResult& r) { return std::log(r.high / r.low) / 2; }

// Is the measured time inside, were the program's deviation another?
bool holds(const PublishedResult& r, double program, double other) {
  const double all = std::pow(half_width(r) / kDeviationsOf80Percent, 2) - program * program + other * other;
  return std::abs(std::log(r.measured / r.predicted)) <= kDeviationsOf80Percent * std::sqrt(std::max(0.0, all));
}

std::optional<double> held_out(const std::vector<PublishedResult>& rows, double program) {
  std::size_t inside = 0;
  for (const PublishedResult& r : rows) {
    std::vector<PublishedResult> others;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(others),
                 [&](const PublishedResult& o) { return o.table != r.table; });
    if (others.empty()) return std::nullopt;
    inside += holds(r, program, conformal_deviation(others, program)) ? 1 : 0;
  }
  return static_cast<double>(inside) / static_cast<double>(rows.size());
}

IntervalCoverage coverage_of(const std::vector<PublishedResult>& rows, std::optional<JobKind> job) {
  IntervalCoverage c;
  c.job = job;
  c.rows = rows.size();
  std::vector<double> widths;
  for (const PublishedResult& r : rows) {
    c.inside += r.measured >= r.low && r.measured <= r.high ? 1.0 / static_cast<double>(rows.size()) : 0;
    widths.push_back(half_width(r));
  }
  c.half_width = median(widths);
  if (!job) return c;
  c.deviation = conformal_deviation(rows, program_deviation(*job));
  c.inside_held_out = held_out(rows, program_deviation(*job));
  return c;
}

}  // namespace

double conformal_deviation(const std::vector<PublishedResult>& rows, double program) {
  if (rows.empty()) return 0;
  std::vector<double> needed;  // in squares
  for (const PublishedResult& r : rows) {
    const double all = std::pow(half_width(r) / kDeviationsOf80Percent, 2), of_prices = all - program * program;
    needed.push_back(
        std::max(0.0, std::pow(std::log(r.measured / r.predicted) / kDeviationsOf80Percent, 2) - of_prices));
  }
  const auto rank = static_cast<std::size_t>(std::ceil(0.8 * static_cast<double>(rows.size() + 1)));
  const double square = value_of_rank(std::move(needed), std::min(rank, rows.size()) - 1);
  return std::round(std::sqrt(square) * 1000) / 1000;
}

std::vector<IntervalCoverage> interval_coverage(const std::vector<PublishedResult>& results) {
  std::vector<IntervalCoverage> all;
  std::vector<PublishedResult> whole;
  for (std::size_t k = 0; k < kJobKinds; ++k) {
    const auto job = static_cast<JobKind>(k);
    std::vector<PublishedResult> rows;
    std::copy_if(results.begin(), results.end(), std::back_inserter(rows),
                 [&](const PublishedResult& r) { return counts(r) && r.job == job; });
    if (rows.empty()) continue;
    all.push_back(coverage_of(rows, job));
    whole.insert(whole.end(), rows.begin(), rows.end());
  }
  if (!whole.empty()) all.push_back(coverage_of(whole, std::nullopt));
  return all;
}

}  // namespace memwall
