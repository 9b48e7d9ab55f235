// The memory of the next steps, from that of the steps so far: the peak of each with an interval, and a warning before
// it does not fit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/units.h"

namespace memwall {

// Samples at equal distances (of time, or of events), in bytes.
struct MemorySeries {
  std::vector<double> bytes;
  std::size_t period = 0;         // samples per step; 0 = to be found
  double seconds_per_sample = 0;  // 0 = unknown
};

struct StepForecast {
  int steps_ahead = 1;
  Bytes peak = 0, low = 0, high = 0;  // `coverage` of the intervals hold, by the residuals of past forecasts
};

struct MemoryForecast {
  std::size_t period = 0;
  bool period_found = false;  // by autocorrelation, not given
  std::vector<StepForecast> steps;
  double coverage = 0.9;
  Bytes growth_per_step = 0;          // of the trend
  std::optional<int> steps_to_limit;  // the first step whose `high` passes the capacity; none within the horizon
  // Mean absolute error of one-step-ahead forecasts of the peak over the past steps, each from the steps before it.
  Bytes error = 0, last_value_error = 0, seasonal_naive_error = 0;
  std::vector<std::string> notes;
};

// `capacity` 0 = unknown. Throws UsageError where the series is too short (fewer than 3 whole steps).
MemoryForecast forecast_memory(const MemorySeries& series, int steps_ahead, Bytes capacity, double coverage = 0.9);

// The period with the highest autocorrelation after detrending; 0 if there is none above chance.
std::size_t find_period(const std::vector<double>& series);

}  // namespace memwall
