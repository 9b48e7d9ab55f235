#include "validate/published/interval_coverage.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/quantile.h"
#include "traces/run/analysis/step_interval.h"

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

// The smallest deviations, by their sum, that leave as few rows outside as four fifths of n + 1 allow.
ProgramDeviation narrowest(const std::vector<Side>& shorter, const std::vector<Side>& longer,
                           ProgramDeviation program) {
  ProgramDeviation least;
  const std::size_t rows = shorter.size();
  if (rows == 0) return least;
  const auto held = static_cast<std::size_t>(std::ceil(0.8 * static_cast<double>(rows + 1)));
  const std::size_t outside = rows - std::min(held, rows);
  for (std::size_t below = 0; below <= outside; ++below) {
    const ProgramDeviation here{conformal(shorter, program.shorter, below),
                                conformal(longer, program.longer, outside - below)};
    if (below == 0 || here.shorter + here.longer < least.shorter + least.longer) least = here;
  }
  return least;
}

// How many rows are inside by the deviation of the other tables, of how many that have another.
struct HeldOut {
  std::size_t inside = 0, rows = 0;
  std::optional<double> share() const {
    return rows == 0 ? std::nullopt : std::optional(static_cast<double>(inside) / static_cast<double>(rows));
  }
};

std::vector<PublishedResult> without_table(const std::vector<PublishedResult>& rows, const std::string& table) {
  std::vector<PublishedResult> others;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(others),
               [&](const PublishedResult& o) { return o.table != table; });
  return others;
}

// A row without constants, whose interval holds host_deviation(), with another one in its place.
PublishedResult with_host(PublishedResult r, ProgramDeviation host) {
  const IntervalEnds now = host_ends(r.unfitted.host, host_deviation()), other = host_ends(r.unfitted.host, host);
  const auto end = [](double all, double with, double without) {
    return std::sqrt(std::max(0.0, all * all - without * without + with * with));
  };
  r.high = r.predicted * std::exp(end(above(r), other.longer, now.longer));
  r.low = r.predicted * std::exp(-end(below(r), other.shorter, now.shorter));
  return r;
}

// `rows` of one kind. `all`: of every kind, by which the host's deviation is made anew where rows are without
// constants; empty where they have some.
HeldOut held_out(std::vector<PublishedResult> rows, ProgramDeviation program, const std::vector<PublishedResult>& all) {
  HeldOut h;
  std::set<std::string> tables;
  for (const PublishedResult& r : rows) tables.insert(r.table);
  for (const std::string& table : tables) {
    std::vector<PublishedResult> changed = rows;
    if (!all.empty()) {
      const ProgramDeviation host = host_coverage(without_table(all, table)).deviation;
      for (PublishedResult& r : changed) r = with_host(std::move(r), host);
    }
    const std::vector<PublishedResult> others = without_table(changed, table);
    if (others.empty()) continue;
    const ProgramDeviation deviation = conformal_deviation(others, program);
    for (const PublishedResult& r : changed) {
      if (r.table != table) continue;
      ++h.rows;
      h.inside += holds(r, program, deviation) ? 1 : 0;
    }
  }
  return h;
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
  return narrowest(shorter, longer, program);
}

std::vector<IntervalCoverage> interval_coverage(const std::vector<PublishedResult>& predicted, CoverageOf which) {
  const bool unfitted = which == CoverageOf::unfitted;
  const std::vector<PublishedResult> results = unfitted ? without_constants(predicted) : predicted;
  std::vector<IntervalCoverage> all;
  std::vector<PublishedResult> whole;
  HeldOut of_all;
  for (std::size_t k = 0; k < kJobKinds; ++k) {
    const auto job = static_cast<JobKind>(k);
    std::vector<PublishedResult> rows, calibrating;
    std::copy_if(results.begin(), results.end(), std::back_inserter(rows),
                 [&](const PublishedResult& r) { return counts(r) && r.job == job; });
    if (rows.empty()) continue;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(calibrating),
                 [&](const PublishedResult& r) { return unfitted || r.fitted; });
    const ProgramDeviation program = unfitted ? program_deviation(job) : fitted_program_deviation(job);
    const HeldOut out = held_out(calibrating, program, unfitted ? predicted : std::vector<PublishedResult>());
    all.push_back(coverage_of(rows, job));
    all.back().calibrating = calibrating.size();
    all.back().inside_held_out = out.share();
    all.back().deviation = conformal_deviation(calibrating, program);
    of_all.inside += out.inside, of_all.rows += out.rows;
    whole.insert(whole.end(), rows.begin(), rows.end());
  }
  if (whole.empty()) return all;
  std::size_t calibrating = 0;
  for (const IntervalCoverage& kind : all) calibrating += kind.calibrating;
  all.push_back(coverage_of(whole, std::nullopt));
  all.back().calibrating = calibrating;
  all.back().inside_held_out = of_all.share();
  return all;
}

HostCoverage host_coverage(const std::vector<PublishedResult>& results) {
  constexpr double kLeastShare = 0.5;
  HostCoverage c;
  std::vector<Side> shorter, longer;
  for (const PublishedResult& r : results) {
    if (!counts(r) || r.unfitted.predicted <= 0 || r.unfitted.host.path < kLeastShare) continue;
    const double relative = r.measured / r.unfitted.predicted;
    const double factor = std::log(r.unfitted.host.factor_of(relative));
    ++c.rows;
    c.inside += r.measured >= r.unfitted.low && r.measured <= r.unfitted.high ? 1 : 0;
    shorter.push_back({relative < 1 ? factor : -factor, 0});
    longer.push_back({relative < 1 ? -factor : factor, 0});
  }
  if (c.rows > 0) c.inside /= static_cast<double>(c.rows);
  c.deviation = narrowest(shorter, longer, {});
  return c;
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
