// Seasonal-trend decomposition by Loess (STL): a series becomes trend + seasonal + remainder.
// Source: Cleveland, Cleveland, McRae, Terpenning, "STL: A Seasonal-Trend Decomposition Procedure Based on Loess",
// Journal of Official Statistics 6 (1990).
#pragma once

#include <cstddef>
#include <vector>

namespace memwall {

struct SeasonalTrendSettings {
  std::size_t period = 0;           // points per season, at least 2
  std::size_t seasonal_window = 7;  // n_s, odd; 0 = periodic (the seasonal part is the same in every season)
  std::size_t trend_window = 0;     // n_t, odd; 0 = the paper's choice from period and seasonal_window
  std::size_t low_pass_window = 0;  // n_l, odd; 0 = the least odd number >= period
  int inner_iterations = 2, outer_iterations = 1;  // outer > 0: robust against outliers
};

struct SeasonalTrend {
  std::vector<double> trend, seasonal, remainder;  // as long as the series; they add up to it
  std::vector<double> weights;                     // of robustness, in [0, 1]
};

// REQUIRES: period >= 2, at least two whole periods, finite values.
SeasonalTrend decompose(const std::vector<double>& series, const SeasonalTrendSettings& settings);

}  // namespace memwall
