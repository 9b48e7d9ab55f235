// Seasonal-trend decomposition by Loess (STL): a series becomes trend + seasonal + remainder.
// Source: Cleveland, Cleveland, McRae, Terpenning, "STL: A Seasonal-Trend Decomposition Procedure Based on Loess",
// Journal of Official Statistics 6 (1990). Names in brackets are the paper's.
#pragma once

#include <cstddef>
#include <vector>

namespace memwall {

struct SeasonalTrendSettings {
  std::size_t period = 0;           // [n_p] points per season, at least 2
  std::size_t seasonal_window = 7;  // [n_s] odd; 0 = periodic (the seasonal part is the same in every season)
  std::size_t trend_window = 0;     // [n_t] odd; 0 = the paper's choice: least odd number >= 1.5 n_p / (1 - 1.5 / n_s)
  std::size_t low_pass_window = 0;  // [n_l] odd; 0 = the least odd number >= period
  int inner_iterations = 2, outer_iterations = 1;  // [n_i, n_o] outer > 0: robust against outliers
  // Trend and low-pass curves are fitted at every (window / jumps)-th point, and straight between. 0 = at every point:
  // exact, and as slow as points x window. The authors' program uses 10.
  std::size_t jumps = 0;
};

struct SeasonalTrend {
  std::vector<double> trend, seasonal, remainder;  // as long as the series; they add up to it
  std::vector<double> weights;                     // [rho] of robustness, in [0, 1]
};

// REQUIRES: period >= 2, at least two whole periods, finite values.
SeasonalTrend decompose(const std::vector<double>& series, const SeasonalTrendSettings& settings);

}  // namespace memwall
