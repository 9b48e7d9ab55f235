#include "models/workload/forecast/memory_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <span>
#include <string_view>

#include "models/workload/forecast/seasonal_trend.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/quantile.h"

namespace memwall {
namespace {

constexpr std::size_t kLongestHistory = 100;  // steps that are looked at
constexpr std::size_t kBacktests = 40;        // of them, forecast from those before
constexpr double kForgetting = 0.95;          // weight of a backtest, per step that it lies further back
constexpr double kClearlyBetter = 0.99;       // of two methods that err alike, the simpler one is taken
constexpr double kDamping = 0.8;

// In the order of simplicity.
enum Method : std::size_t { last_step, damped_growth, growth, usual_level, trend_line, kMethods };

// `unit`: what is continued, a step or a period.
std::string method_text(Method method, const std::string& unit) {
  switch (method) {
    case last_step:
      return "the last " + unit + " again";
    case damped_growth:
      return fmt::format("the last {0}, growing, damped by 0.8 per {0}", unit);
    case growth:
      return "the last " + unit + ", growing";
    case usual_level:
      return "STL: the season at its usual level";
    default:
      return "STL: the season on a line through the trend";
  }
}

// The median of the slopes between all pairs (Theil 1950, Sen 1968): steps that stand out do not turn it.
double slope_of(std::span<const double> values) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = i + 1; j < values.size(); ++j)
      slopes.push_back((values[j] - values[i]) / static_cast<double>(j - i));
  return slopes.empty() ? 0 : median(std::move(slopes));
}

// What one method says: the peak of step h from now is base + growth * (d + d^2 + ... + d^h).
struct Continuation {
  double base = 0, growth = 0, damping = 0;
  std::vector<double> season;  // samples of a step; only their shape counts
  bool known = false;
  double added(std::int64_t steps) const {
    if (damping == 1) return growth * static_cast<double>(steps);
    return growth * damping * (1 - std::pow(damping, static_cast<double>(steps))) / (1 - damping);
  }
  double peak(std::int64_t steps) const { return std::max(0.0, base + added(steps)); }
};
using Continuations = std::array<Continuation, kMethods>;

// Whole steps of `period` samples each.
struct History {
  std::span<const double> samples;
  std::size_t period = 0;
  std::size_t steps() const { return samples.size() / period; }
  std::span<const double> step(std::size_t i) const { return samples.subspan(i * period, period); }
  double peak(std::size_t i) const { return *std::max_element(step(i).begin(), step(i).end()); }
  History before(std::size_t i) const { return {samples.first(i * period), period}; }
};

std::vector<double> peaks_of(const History& history) {
  std::vector<double> peaks;
  for (std::size_t i = 0; i < history.steps(); ++i) peaks.push_back(history.peak(i));
  return peaks;
}

SeasonalTrend decomposition_of(const History& history) {
  return decompose(
      {history.samples.begin(), history.samples.end()},
      {.period = history.period, .seasonal_window = 0, .inner_iterations = 1, .outer_iterations = 3, .jumps = 10});
}

// The mean of the trend over each step.
std::vector<double> levels_of(const SeasonalTrend& parts, std::size_t period) {
  std::vector<double> levels(parts.trend.size() / period);
  for (std::size_t i = 0; i < parts.trend.size(); ++i)
    levels[i / period] += parts.trend[i] / static_cast<double>(period);
  return levels;
}

void continue_last_step(const History& history, const std::vector<double>& peaks, Continuations& to) {
  const auto last = history.step(history.steps() - 1);
  to[last_step] = {.base = peaks.back(), .season = {last.begin(), last.end()}, .known = true};
  if (peaks.size() < 2) return;
  to[growth] = to[last_step];
  to[growth].growth = slope_of(peaks);
  to[growth].damping = 1;
  to[damped_growth] = to[growth];
  to[damped_growth].damping = kDamping;
}

// A peak stands above the level of its step by what the season and the noise of a step make; the median of that over
// the steps is added to the level that comes.
void continue_trend(const History& history, const std::vector<double>& peaks, Continuations& to) {
  const SeasonalTrend parts = decomposition_of(history);
  const std::vector<double> levels = levels_of(parts, history.period);
  std::vector<double> crests, intercepts;
  for (std::size_t i = 0; i < levels.size(); ++i) crests.push_back(peaks[i] - levels[i]);
  const double crest = median(crests), slope = slope_of(levels);
  const auto last = static_cast<double>(levels.size() - 1);
  for (std::size_t i = 0; i < levels.size(); ++i)
    intercepts.push_back(levels[i] + slope * (last - static_cast<double>(i)));
  const auto continued = [&](double level, double ramp) {
    Continuation c{.base = level + crest, .season = {}, .known = true};
    const double middle = (static_cast<double>(history.period) - 1) / 2;
    for (std::size_t i = 0; i < history.period; ++i)
      c.season.push_back(level + parts.seasonal[parts.seasonal.size() - history.period + i] +
                         ramp * (static_cast<double>(i) - middle) / static_cast<double>(history.period));
    return c;
  };
  to[usual_level] = continued(median(levels), 0);
  to[trend_line] = continued(median(intercepts), slope);
  to[trend_line].growth = slope;
  to[trend_line].damping = 1;
}

Continuations continue_all(const History& history) {
  Continuations all;
  const std::vector<double> peaks = peaks_of(history);
  continue_last_step(history, peaks, all);
  if (history.steps() >= 3) continue_trend(history, peaks, all);
  return all;
}

// Forecasts of past steps, each from the steps before it.
class Backtest {
 public:
  explicit Backtest(const History& history) {
    const std::size_t n = history.steps();
    for (std::size_t i = n > kBacktests ? n - kBacktests : 1; i < n; ++i) {
      const Method method = best();  // from what was known before this step
      const Continuations all = continue_all(history.before(i));
      const double peak = history.peak(i);
      Errors errors{};
      for (std::size_t m = 0; m < kMethods; ++m) errors[m] = all[m].known ? std::abs(peak - all[m].peak(1)) : -1;
      of_methods_.push_back(errors);
      of_choice_.push_back(errors[method]);  // known: the best of past steps was known there, with fewer steps
      of_last_value_.push_back(std::abs(peak - history.samples[i * history.period - 1]));
    }
  }

  // Each method against the best of the simpler ones, over the steps that both forecast.
  Method best() const {
    Method best = last_step;
    for (std::size_t m = last_step + 1; m < kMethods; ++m) {
      double mine = 0, others = 0, weight = 1;
      bool compared = false;
      for (std::size_t i = of_methods_.size(); i-- > 0; weight *= kForgetting) {
        if (of_methods_[i][m] < 0 || of_methods_[i][best] < 0) continue;
        mine += weight * of_methods_[i][m];
        others += weight * of_methods_[i][best];
        compared = true;
      }
      if (compared && mine < kClearlyBetter * others) best = static_cast<Method>(m);
    }
    return best;
  }

  std::size_t size() const { return of_choice_.size(); }
  double error() const { return mean(of_choice_); }
  double last_value_error() const { return mean(of_last_value_); }
  double seasonal_naive_error() const {
    double sum = 0;
    for (const Errors& errors : of_methods_) sum += errors[last_step];
    return sum / static_cast<double>(of_methods_.size());
  }

  // Half the width of the interval one step ahead. With enough errors their quantile, of rank ceil((n + 1) coverage)
  // (split conformal prediction, Vovk et al. 2005); with fewer, the largest, or what exponentially distributed errors
  // of their mean would give, whichever is more.
  double half_width(double coverage) const {
    std::vector<double> errors = of_choice_;
    std::sort(errors.begin(), errors.end());
    const auto rank = static_cast<std::size_t>(std::ceil((static_cast<double>(errors.size()) + 1) * coverage));
    if (rank <= errors.size()) return errors[rank - 1];
    return std::max(errors.back(), mean(errors) * std::log(1 / (1 - coverage)));
  }

 private:
  using Errors = std::array<double, kMethods>;  // -1: the method needs more steps
  static double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double v : values) sum += v;
    return sum / static_cast<double>(values.size());
  }
  std::vector<Errors> of_methods_;
  std::vector<double> of_choice_, of_last_value_;
};

Bytes to_bytes(double value) { return static_cast<Bytes>(std::llround(std::clamp(value, -0x1p62, 0x1p62))); }

// Thinned samples of the last whole steps.
std::vector<double> history_samples(const MemorySeries& series, std::size_t period, std::size_t& samples_per_step) {
  const std::size_t steps = std::min(series.bytes.size() / period, kLongestHistory);
  std::vector<std::size_t> boundaries;
  for (std::size_t i = 0; i <= steps; ++i) boundaries.push_back(series.bytes.size() - (steps - i) * period);
  samples_per_step = std::min(period, kStepSamples);
  return resample_steps(series.bytes, boundaries, samples_per_step).bytes;
}

std::size_t period_of(const MemorySeries& series) {
  const std::size_t period = series.period > 0 ? series.period : find_period(series.bytes);
  if (period == 0)
    throw UsageError(
        fmt::format("in {} samples no period is found whose repetition stands above chance; at least three steps must "
                    "be there (give the samples per step with --period).",
                    series.bytes.size()));
  if (period < 2 || series.bytes.size() / period < 2)
    throw UsageError(fmt::format("{} hold {} of {}; expected at least 2 steps of at least 2 samples.",
                                 counted_text(series.bytes.size(), "sample"),
                                 counted_text(series.bytes.size() / period, "whole step"), period));
  return period;
}

void add_steps(const Continuation& best, double half_width, int steps_ahead, Bytes capacity, MemoryForecast& to) {
  for (int h = 1; h <= steps_ahead; ++h) {
    // As errors that add up from step to step would: no less than any of the methods makes.
    const double peak = best.peak(h), half = half_width * std::sqrt(static_cast<double>(h));
    to.steps.push_back({h, to_bytes(peak), to_bytes(std::max(0.0, peak - half)), to_bytes(peak + half)});
    if (capacity > 0 && !to.steps_to_limit && to.steps.back().high > capacity) to.steps_to_limit = h;
  }
  if (capacity <= 0) return;
  const auto passes = [&](std::int64_t h) { return to_bytes(best.peak(h)) > capacity; };
  if (!passes(1) && !passes(kFarthestStep)) return;
  std::int64_t no = 0, yes = kFarthestStep;  // peaks are monotonous in h
  if (passes(1)) yes = 1;
  while (yes - no > 1) (passes((no + yes) / 2) ? yes : no) = (no + yes) / 2;
  to.steps_to_capacity = yes;
}

void add_notes(const MemorySeries& series, const MemoryForecast& f, std::vector<std::string>& notes) {
  if (f.period_found)
    notes.push_back(fmt::format("The period of {} samples was found by autocorrelation; --period sets it.", f.period));
  const std::string unit = f.unit();
  if (const std::size_t cut = series.bytes.size() % f.period; cut > 0)
    notes.push_back(fmt::format("Left out: the first {}, no whole {}.", counted_text(cut, "sample"), unit));
  if (f.whole_steps > kLongestHistory)
    notes.push_back(fmt::format("Only the last {} of {} {}s are looked at.", kLongestHistory, f.whole_steps, unit));
  if (f.backtests < 9)
    notes.push_back(
        fmt::format("{} could be forecast from those before: too few to choose a method well or to promise that the "
                    "interval covers.",
                    counted_text(f.backtests, "past " + unit)));
  if (f.error == f.seasonal_naive_error)
    notes.push_back(fmt::format("On the past {0}s this did as well as repeating the {0} before, and no better.", unit));
}

}  // namespace

MemorySeries resample_steps(const std::vector<double>& bytes, const std::vector<std::size_t>& boundaries,
                            std::size_t samples) {
  assert(samples >= 2);
  MemorySeries series{.bytes = {}, .period = samples};
  for (std::size_t s = 0; s + 1 < boundaries.size(); ++s) {
    const std::size_t begin = boundaries[s], length = boundaries[s + 1] - begin;
    assert(boundaries[s] <= boundaries[s + 1] && boundaries[s + 1] <= bytes.size());
    for (std::size_t i = 0; i < samples; ++i) {
      const std::size_t from = begin + i * length / samples;
      const std::size_t to = std::max(from + 1, begin + (i + 1) * length / samples);
      if (length == 0)
        series.bytes.push_back(begin > 0 ? bytes[begin - 1] : 0);
      else
        series.bytes.push_back(*std::max_element(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                                                 bytes.begin() + static_cast<std::ptrdiff_t>(to)));
    }
  }
  return series;
}

MemoryForecast forecast_memory(const MemorySeries& series, int steps_ahead, Bytes capacity, double coverage) {
  assert(steps_ahead >= 1 && coverage > 0 && coverage < 1);
  MemoryForecast f;
  f.coverage = coverage;
  f.period = period_of(series);
  f.period_found = series.period == 0;
  f.whole_steps = series.bytes.size() / f.period;
  std::size_t samples_per_step = 0;
  const std::vector<double> samples = history_samples(series, f.period, samples_per_step);
  const History history{samples, samples_per_step};

  const Backtest backtest(history);
  f.backtests = backtest.size();
  f.error = to_bytes(backtest.error());
  f.last_value_error = to_bytes(backtest.last_value_error());
  f.seasonal_naive_error = to_bytes(backtest.seasonal_naive_error());
  f.growth_per_step = to_bytes(slope_of(levels_of(decomposition_of(history), samples_per_step)));

  const Method method = backtest.best();
  const Continuations all = continue_all(history);
  const Continuation& best = all[method];
  f.method = method_text(method, f.unit());
  add_steps(best, backtest.half_width(coverage), steps_ahead, capacity, f);
  // The expected step, lifted so that its highest sample is the expected peak.
  const double highest = *std::max_element(best.season.begin(), best.season.end());
  for (const double sample : best.season) f.next_step.push_back(std::max(0.0, sample + best.peak(1) - highest));
  add_notes(series, f, f.notes);
  return f;
}

}  // namespace memwall
