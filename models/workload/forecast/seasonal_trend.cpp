#include "models/workload/forecast/seasonal_trend.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "models/workload/forecast/loess.h"
#include "sim/quantile.h"

namespace memwall {
namespace {

std::size_t least_odd(double at_least) {
  const auto whole = static_cast<std::size_t>(std::ceil(at_least));
  return whole % 2 == 1 ? whole : whole + 1;
}

// Means of `length` neighbours: shorter than the series by length - 1.
std::vector<double> moving_average(const std::vector<double>& series, std::size_t length) {
  std::vector<double> means(series.size() - length + 1);
  const auto n = static_cast<double>(length);
  double sum = 0;
  for (std::size_t i = 0; i < length; ++i) sum += series[i];
  means[0] = sum / n;
  for (std::size_t i = 1; i < means.size(); ++i) {
    sum += series[i + length - 1] - series[i - 1];
    means[i] = sum / n;
  }
  return means;
}

class Decomposition {
 public:
  Decomposition(const std::vector<double>& series, const SeasonalTrendSettings& settings)
      : series_(series), settings_(settings), period_(settings.period), periodic_(settings.seasonal_window == 0) {
    const auto p = static_cast<double>(period_);
    // A periodic seasonal part is one with a window without end.
    const double shrink = periodic_ ? 1 : 1 - 1.5 / static_cast<double>(settings.seasonal_window);
    assert(shrink > 0);
    trend_window_ = settings.trend_window > 0 ? settings.trend_window : least_odd(1.5 * p / shrink);
    low_pass_window_ = settings.low_pass_window > 0 ? settings.low_pass_window : least_odd(p);
    parts_.trend.assign(series.size(), 0);
    parts_.seasonal.assign(series.size(), 0);
    parts_.weights.assign(series.size(), 1);
  }

  SeasonalTrend run() {
    for (int inner = 0; inner < settings_.inner_iterations; ++inner) improve();
    for (int outer = 0; outer < settings_.outer_iterations; ++outer) {
      weigh();
      for (int inner = 0; inner < settings_.inner_iterations; ++inner) improve();
    }
    parts_.remainder = remainder();
    return std::move(parts_);
  }

 private:
  LoessSettings curve(std::size_t window) const {
    const std::size_t jump = settings_.jumps == 0 ? 1 : (window + settings_.jumps - 1) / settings_.jumps;
    return {.window = window, .degree = 1, .jump = std::max<std::size_t>(1, jump)};
  }

  // The inner loop: the six steps of section 2.
  void improve() {
    const std::size_t n = series_.size();
    std::vector<double> detrended(n);  // 1
    for (std::size_t i = 0; i < n; ++i) detrended[i] = series_[i] - parts_.trend[i];
    const std::vector<double> cycles = smooth_cycles(detrended);                            // 2
    const std::vector<double> low = low_pass(cycles);                                       // 3
    for (std::size_t i = 0; i < n; ++i) parts_.seasonal[i] = cycles[i + period_] - low[i];  // 4
    std::vector<double> deseasonalized(n);                                                  // 5
    for (std::size_t i = 0; i < n; ++i) deseasonalized[i] = series_[i] - parts_.seasonal[i];
    parts_.trend = loess(deseasonalized, curve(trend_window_), parts_.weights);  // 6
  }

  // Each cycle-subseries (one place of all seasons) smoothed, with one season more at both ends.
  std::vector<double> smooth_cycles(const std::vector<double>& detrended) {
    std::vector<double> cycles(series_.size() + 2 * period_);
    const std::size_t n = series_.size();
    std::vector<double> points, weights;
    for (std::size_t place = 0; place < period_; ++place) {
      points.clear();
      weights.clear();
      for (std::size_t i = place; i < n; i += period_) {
        points.push_back(detrended[i]);
        weights.push_back(parts_.weights[i]);
      }
      smooth(points, weights);
      for (std::size_t k = 0; k < points.size() + 2; ++k) cycles[k * period_ + place] = smooth_[k];
    }
    return cycles;
  }

  // `smooth_`: the curve through one cycle-subseries, from the season before its first to that after its last. A
  // window without end makes it a mean.
  void smooth(const std::vector<double>& points, const std::vector<double>& weights) {
    smooth_.resize(points.size() + 2);
    const LoessSettings settings{.window = settings_.seasonal_window, .degree = 1, .jump = 1};
    if (periodic_)
      std::fill(smooth_.begin(), smooth_.end(), weighted_mean(points, weights));
    else
      for (std::size_t k = 0; k < smooth_.size(); ++k)
        smooth_[k] = loess_at(points, static_cast<double>(k) - 1, settings, weights);
  }

  static double weighted_mean(const std::vector<double>& points, const std::vector<double>& weights) {
    double sum = 0, weight = 0, plain = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      sum += weights[i] * points[i];
      weight += weights[i];
      plain += points[i];
    }
    return weight > 1e-12 ? sum / weight : plain / static_cast<double>(points.size());
  }

  std::vector<double> low_pass(const std::vector<double>& cycles) const {
    const std::vector<double> averaged = moving_average(moving_average(moving_average(cycles, period_), period_), 3);
    return loess(averaged, curve(low_pass_window_));
  }

  std::vector<double> remainder() const {
    std::vector<double> r(series_.size());
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = series_[i] - parts_.trend[i] - parts_.seasonal[i];
    return r;
  }

  // The outer loop: bisquare weights of the remainder, section 2: h = 6 median |R|.
  void weigh() {
    std::vector<double> sizes = remainder();
    double largest = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = std::abs(sizes[i]);
      largest = std::max(largest, std::abs(series_[i]));
    }
    // What rounding leaves of an exact fit is no outlier.
    const double rounding = 1e-9 * largest;
    const double h = std::max(6 * median(sizes), rounding);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const double u = h > 0 ? sizes[i] / h : 0;
      parts_.weights[i] = u < 1 ? (1 - u * u) * (1 - u * u) : 0;
    }
  }

  const std::vector<double>& series_;
  const SeasonalTrendSettings& settings_;
  std::size_t period_, trend_window_ = 0, low_pass_window_ = 0;
  bool periodic_;
  SeasonalTrend parts_;
  std::vector<double> smooth_;
};

}  // namespace

SeasonalTrend decompose(const std::vector<double>& series, const SeasonalTrendSettings& settings) {
  assert(settings.period >= 2 && series.size() >= 2 * settings.period);
  assert(settings.inner_iterations >= 1 && settings.outer_iterations >= 0);
  return Decomposition(series, settings).run();
}

}  // namespace memwall
