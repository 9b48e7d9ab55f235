// Loess: the value of a smooth curve at a place is that of a straight line (or of a constant) fitted to the nearest
// points, the nearer the heavier.
//
// Points stand at 0, 1, 2, ... Neighbourhood and weights are those of Cleveland et al. 1990 (models/workload/forecast/
// seasonal_trend.h), section 2: of the q nearest points the i-th weighs W(|i - x| / lambda), where lambda is the
// distance of the farthest of them and W(u) = (1 - u^3)^3 below 1, else 0; with q > n, lambda is multiplied by q/n.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace memwall {

struct LoessSettings {
  std::size_t window = 7;  // q, points in the neighbourhood
  int degree = 1;          // 0: a local constant, 1: a local line
  std::size_t jump = 1;    // fitted at every jump-th point and at the last, linear between
};

// The curve at `x`, which may lie outside of the points. `weights` multiply those of distance: of robustness, as many
// as there are points, or none. Where they leave nothing of a neighbourhood, it is doubled until something is left; the
// paper is silent there, and the authors' program keeps the point itself, the outlier that was to be taken away.
// REQUIRES: at least one point, window >= 1, degree 0 or 1, weights >= 0.
double loess_at(std::span<const double> points, double x, const LoessSettings& settings,
                std::span<const double> weights = {});

// The curve at every point.
std::vector<double> loess(std::span<const double> points, const LoessSettings& settings,
                          std::span<const double> weights = {});

}  // namespace memwall
