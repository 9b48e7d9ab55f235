#include "models/workload/forecast/loess.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace memwall {
namespace {

constexpr double kNoWeight = 1e-12;  // of a whole neighbourhood, in which one point at most weighs 1

struct Neighbourhood {
  std::size_t first = 0, last = 0;  // points [first, last]
  double reach = 0;                 // lambda
};

// The `window` points nearest to x; all where there are fewer.
Neighbourhood neighbourhood_of(double x, std::size_t points, std::size_t window) {
  const std::size_t count = std::min(window, points);
  const double middle = x - (static_cast<double>(count) - 1) / 2;
  const double latest = static_cast<double>(points - count);
  const auto first = static_cast<std::size_t>(std::lround(std::clamp(middle, 0.0, latest)));
  Neighbourhood n{first, first + count - 1, 0};
  n.reach = std::max(std::abs(x - static_cast<double>(n.first)), std::abs(static_cast<double>(n.last) - x));
  if (window > points) n.reach *= static_cast<double>(window) / static_cast<double>(points);
  return n;
}

double tricube(double distance, double reach) {
  if (distance >= reach) return distance == 0 ? 1 : 0;  // reach 0: the point itself
  const double u = distance / reach, v = 1 - u * u * u;
  return v * v * v;
}

// Weighted sums over a neighbourhood, of distances d = i - x.
struct Sums {
  double w = 0, wd = 0, wdd = 0, wy = 0, wdy = 0;
};

Sums sums_of(std::span<const double> points, double x, const Neighbourhood& n, std::span<const double> weights) {
  Sums s;
  for (std::size_t i = n.first; i <= n.last; ++i) {
    const double d = static_cast<double>(i) - x;
    double w = tricube(std::abs(d), n.reach);
    if (!weights.empty()) w *= weights[i];
    s.w += w;
    s.wd += w * d;
    s.wdd += w * d * d;
    s.wy += w * points[i];
    s.wdy += w * d * points[i];
  }
  return s;
}

}  // namespace

double loess_at(std::span<const double> points, double x, const LoessSettings& settings,
                std::span<const double> weights) {
  assert(!points.empty() && settings.window >= 1 && (settings.degree == 0 || settings.degree == 1));
  assert(weights.empty() || weights.size() == points.size());
  Neighbourhood n = neighbourhood_of(x, points.size(), settings.window);
  Sums s = sums_of(points, x, n, weights);
  for (std::size_t window = 2 * settings.window; s.w <= kNoWeight && !weights.empty(); window *= 2) {
    n = neighbourhood_of(x, points.size(), window);
    s = sums_of(points, x, n, weights);
    if (window > 2 * points.size()) break;
  }
  if (s.w <= kNoWeight && !weights.empty()) {
    n = neighbourhood_of(x, points.size(), settings.window);
    s = sums_of(points, x, n, {});
  }
  // A window of two points gives none of them weight, half way between.
  if (s.w <= kNoWeight)
    return points[static_cast<std::size_t>(std::clamp(std::round(x), 0.0, static_cast<double>(points.size() - 1)))];
  const double mean = s.wy / s.w, mean_distance = s.wd / s.w;
  if (settings.degree == 0) return mean;
  const double variance = s.wdd / s.w - mean_distance * mean_distance;
  // One point alone has weight: no slope can be told from it.
  if (variance <= 1e-9 * std::max(1.0, n.reach * n.reach)) return mean;
  const double slope = (s.wdy / s.w - mean_distance * mean) / variance;
  return mean - slope * mean_distance;
}

std::vector<double> loess(std::span<const double> points, const LoessSettings& settings,
                          std::span<const double> weights) {
  assert(settings.jump >= 1);
  std::vector<double> curve(points.size());
  std::size_t before = 0;
  for (std::size_t i = 0; i < points.size();) {
    curve[i] = loess_at(points, static_cast<double>(i), settings, weights);
    for (std::size_t j = before + 1; j < i; ++j) {
      const double share = static_cast<double>(j - before) / static_cast<double>(i - before);
      curve[j] = curve[before] + share * (curve[i] - curve[before]);
    }
    if (i + 1 == points.size()) break;
    before = i;
    i = std::min(i + settings.jump, points.size() - 1);
  }
  return curve;
}

}  // namespace memwall
