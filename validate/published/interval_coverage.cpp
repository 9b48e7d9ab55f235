#include "validate/published/interval_coverage.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "sim/quantile.h"

namespace memwall {
namespace {

constexpr double kDeviationsOf80Percent = 1.2816;

bool counts(const PublishedResult& r) {
  return r.metric == "step time" && r.why_not.empty() && r.half != Half::fitted && r.high > r.low && r.low > 0 && r.job;
}

std::vector<PublishedResult> without_constants(std::vector<PublishedResult> results) {
  for (PublishedResult& r : results) {
    if (r.unfitted.predicted <= 0) continue;
    r.predicted = r.unfitted.predicted, r.low = r.unfitted.low, r.high = r.unfitted.high, r.job = r.unfitted.job;
  }
  return results;
}

double half_width(const PublishedResult& r) { return std::log(r.high / r.low) / 2; }

// What an end of the interval would be, in ln from what is predicted, were the program's deviation another.
double end_with(double end, double program, double other) {
  const double all = std::pow(end / kDeviationsOf80Percent, 2) - program * program + other * other;
  return kDeviationsOf80Percent * std::sqrt(std::max(0.0, all));
}
double above(const PublishedResult& r) { return std::log(r.high / r.predicted); }
double below(const PublishedResult& r) { return std::log(r.predicted / r.low); }

// Is the measured time inside, were the program's deviations others?
bool holds(const PublishedResult& r, ProgramDeviation program, ProgramDeviation other) {
  const double away = std::log(r.measured / r.predicted);
  return away <= end_with(above(r), program.longer, other.longer) &&
         -away <= end_with(below(r), program.shorter, other.shorter);
}

// `away`: what is measured beyond the prediction; `end`: how far the interval reaches on that side.
struct Side {
  double away = 0, end = 0;
};
// The least deviation with which all but `outside` rows are not beyond their ends, in which `program` is now.
double conformal(const std::vector<Side>& rows, double program, std::size_t outside) {
  std::vector<double> needed;  // in squares
  for (const Side& row : rows) {
    const double of_prices = std::pow(row.end / kDeviationsOf80Percent, 2) - program * program;
    needed.push_back(std::max(0.0, std::pow(std::max(0.0, row.away) / kDeviationsOf80Percent, 2) - of_prices));
  }
  const double square = value_of_rank(std::move(needed), rows.size() - 1 - outside);
  return std::round(std::sqrt(square) * 1000) / 1000;
}

std::optional<double> held_out(const std::vector<PublishedResult>& rows, ProgramDeviation program) {
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

ProgramDeviation conformal_deviation(const std::vector<PublishedResult>& rows, ProgramDeviation program) {
  std::vector<Side> shorter, longer;
  for (const PublishedResult& r : rows) {
    const double away = std::log(r.measured / r.predicted);
    shorter.push_back({-away, below(r)});
    longer.push_back({away, above(r)});
  }
  ProgramDeviation least;
  if (rows.empty()) return least;
  const auto held = static_cast<std::size_t>(std::ceil(0.8 * static_cast<double>(rows.size() + 1)));
  const std::size_t outside = rows.size() - std::min(held, rows.size());
  for (std::size_t below = 0; below <= outside; ++below) {
    const ProgramDeviation here{conformal(shorter, program.shorter, below),
                                conformal(longer, program.longer, outside - below)};
    if (below == 0 || here.shorter + here.longer < least.shorter + least.longer) least = here;
  }
  return least;
}

std::vector<IntervalCoverage> interval_coverage(const std::vector<PublishedResult>& predicted, CoverageOf which) {
  const std::vector<PublishedResult> results = which == CoverageOf::unfitted ? without_constants(predicted) : predicted;
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

CarriedCoverage carried_coverage(const std::vector<PublishedResult>& results) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::vector<double>>> jobs;
  for (const PublishedResult& r : results)
    if (r.metric == "step time" && r.why_not.empty() && r.unfitted.predicted > 0 && !r.work.empty())
      jobs[{r.table, r.work}][r.gpu].push_back(std::log(r.measured / r.unfitted.predicted));
  std::vector<double> away;
  for (const auto& [job, gpus] : jobs)
    for (const auto& [from, here] : gpus)
      for (const auto& [to, there] : gpus)
        if (from != to) away.push_back(std::abs(median(there) - median(here)));
  CarriedCoverage c;
  c.pairs = away.size();
  if (away.empty()) return c;
  const double end = kDeviationsOf80Percent * carried_deviation();
  c.inside = static_cast<double>(std::count_if(away.begin(), away.end(), [&](double a) { return a <= end; })) /
             static_cast<double>(away.size());
  c.median = median(away);
  const auto rank = static_cast<std::size_t>(std::ceil(0.8 * static_cast<double>(away.size() + 1)));
  c.deviation = std::round(value_of_rank(away, std::min(rank, away.size()) - 1) / kDeviationsOf80Percent * 1000) / 1000;
  return c;
}

}  // namespace memwall
