// The memory of the next steps, from that of the steps so far: the peak of each with an interval, and a warning before
// it does not fit. docs/forecast.md has the method and how well it does.
//
// Five ways to continue the series are tried on every past step from the steps before it, and the one that did best of
// late makes the forecast: the last step again; that plus growth, whole or damped; and an STL decomposition
// (models/workload/forecast/seasonal_trend.h) whose season goes on at its usual level, or on a line through its trend.
// The interval comes from the errors that this choice made on the past steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/units.h"

namespace memwall {

// Samples at equal distances (of time, or of events), in bytes.
struct MemorySeries {
  std::vector<double> bytes;
  std::size_t period = 0;         // samples per step; 0 = to be found
  double seconds_per_sample = 0;  // 0 = unknown
};

// Steps of unequal length, made equal: step i is [boundaries[i], boundaries[i + 1]), each in `samples` samples that
// keep its peaks (the highest of what falls into one). REQUIRES: boundaries ascending and within the bytes, samples >=
// 2; an empty step repeats the value before it.
MemorySeries resample_steps(const std::vector<double>& bytes, const std::vector<std::size_t>& boundaries,
                         std::size_t samples);

struct StepForecast {
  int steps_ahead = 1;
  Bytes peak = 0, low = 0, high = 0;  // `coverage` of the intervals hold, by the residuals of past forecasts
};

struct MemoryForecast {
  std::size_t period = 0;
  bool period_found = false;    // by autocorrelation, not given
  // What is called a step in this struct, as people should read it: a period that was found may be less than a step.
  const char* unit() const { return period_found ? "period" : "step"; }
  std::size_t whole_steps = 0;  // in the series; the forecast begins after its last sample
  std::vector<StepForecast> steps;
  double coverage = 0.9;
  std::string method;                 // of the five: what continues the series
  Bytes growth_per_step = 0;          // of the trend, whether the method continues it or not
  std::optional<int> steps_to_limit;  // the first step whose `high` passes the capacity; none within the horizon
  // The first step whose `peak` passes the capacity, within the horizon or far beyond (kFarthestStep).
  std::optional<std::int64_t> steps_to_capacity;
  std::size_t backtests = 0;  // past steps that were forecast
  // Mean absolute error of one-step-ahead forecasts of the peak over those steps, each from the steps before it. The
  // last value is the last sample before the step, the seasonal-naive forecast is the peak of the step before.
  Bytes error = 0, last_value_error = 0, seasonal_naive_error = 0;
  std::vector<double> next_step;  // samples of the next step as expected, at most kStepSamples
  std::vector<std::string> notes;
};
inline constexpr std::int64_t kFarthestStep = 1'000'000;
inline constexpr std::size_t kStepSamples = 128;  // longer steps are thinned to this, peaks kept

// `capacity` 0 = unknown. REQUIRES: steps_ahead >= 1, 0 < coverage < 1, finite values.
// Throws UsageError where no period is found, and where there are fewer than 2 whole steps.
MemoryForecast forecast_memory(const MemorySeries& series, int steps_ahead, Bytes capacity, double coverage = 0.9);

// The period with the highest autocorrelation after detrending; 0 if there is none above chance. At least three
// periods must be there.
std::size_t find_period(const std::vector<double>& series);

}  // namespace memwall
