#include "models/workload/import/ranks/rank_clock.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/quantile.h"

namespace memwall {
namespace {

constexpr std::size_t kMostPoints = 300;  // of which all pairs are looked at
constexpr std::size_t kFewestForDrift = 8;
constexpr Duration kVisibleDrift = microseconds(20);
constexpr double kMostDrift = 1e-3;

Duration difference(const EndPair& pair) { return pair.reference - pair.own; }

// Every n-th pair, so that their number is bounded and the window stays covered.
std::vector<EndPair> thinned(const std::vector<EndPair>& ends) {
  if (ends.size() <= kMostPoints) return ends;
  std::vector<EndPair> points;
  for (std::size_t i = 0; i < kMostPoints; ++i) points.push_back(ends[i * ends.size() / kMostPoints]);
  return points;
}

double median_slope(const std::vector<EndPair>& points) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      const double run = static_cast<double>((points[j].own - points[i].own).count());
      const double rise = static_cast<double>((difference(points[j]) - difference(points[i])).count());
      if (run > 0) slopes.push_back(rise / run);
    }
  return slopes.empty() ? 0 : upper_median(std::move(slopes));
}

std::vector<Duration> errors_of(const RankClock& clock, const std::vector<EndPair>& ends) {
  std::vector<Duration> errors;
  errors.reserve(ends.size());
  for (const EndPair& pair : ends) {
    const Duration error = clock.on_reference(pair.own) - pair.reference;
    errors.push_back(error < Duration{} ? -error : error);
  }
  return errors;
}

// Offset so that half of the ends lie before, half behind.
void center(RankClock& clock, const std::vector<EndPair>& ends) {
  std::vector<Duration> rest;
  rest.reserve(ends.size());
  for (const EndPair& pair : ends) rest.push_back(pair.reference - clock.on_reference(pair.own));
  clock.offset += upper_median(std::move(rest));
}

}  // namespace

ClockFit fit_clock(std::vector<EndPair> ends) {
  assert(!ends.empty());
  std::sort(ends.begin(), ends.end(), [](const EndPair& a, const EndPair& b) {
    return a.own != b.own ? a.own < b.own : a.reference < b.reference;
  });
  ClockFit fit;
  fit.samples = ends.size();
  fit.clock.pivot = ends[ends.size() / 2].own;
  center(fit.clock, ends);
  fit.median_error = upper_median(errors_of(fit.clock, ends));
  if (ends.size() >= kFewestForDrift) {
    RankClock drifting = fit.clock;
    drifting.drift = median_slope(thinned(ends));
    const double over_window =
        std::fabs(drifting.drift) * static_cast<double>((ends.back().own - ends.front().own).count());
    if (std::fabs(drifting.drift) <= kMostDrift && over_window >= static_cast<double>(kVisibleDrift.count())) {
      center(drifting, ends);
      if (const Duration error = upper_median(errors_of(drifting, ends)); error * 2 <= fit.median_error) {
        fit.clock = drifting;
        fit.median_error = error;
      }
    }
  }
  const std::vector<Duration> errors = errors_of(fit.clock, ends);
  fit.largest_error = *std::max_element(errors.begin(), errors.end());
  return fit;
}

}  // namespace memwall
