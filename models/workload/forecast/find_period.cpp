// The period of a series, by its autocorrelation.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "models/workload/forecast/memory_forecast.h"

namespace memwall {
namespace {

using Complex = std::complex<double>;

// Fast Fourier transform in place (Cooley and Tukey, radix 2). REQUIRES: the size is a power of two.
void transform(std::vector<Complex>& values) {
  const std::size_t n = values.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(values[i], values[j]);
  }
  for (std::size_t length = 2; length <= n; length *= 2) {
    std::vector<Complex> roots(length / 2);
    for (std::size_t k = 0; k < roots.size(); ++k)
      roots[k] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length));
    for (std::size_t i = 0; i < n; i += length)
      for (std::size_t k = 0; k < roots.size(); ++k) {
        const Complex a = values[i + k], b = values[i + k + length / 2] * roots[k];
        values[i + k] = a + b;
        values[i + k + length / 2] = a - b;
      }
  }
}

// Autocorrelation at lags 0 to n/2, each as a mean over the pairs that there are. Empty for a constant.
std::vector<double> autocorrelation(const std::vector<double>& series) {
  const std::size_t n = series.size();
  std::size_t padded = 1;
  while (padded < 2 * n) padded *= 2;
  std::vector<Complex> values(padded);
  for (std::size_t i = 0; i < n; ++i) values[i] = series[i];
  transform(values);
  for (Complex& v : values) v = std::norm(v);
  transform(values);  // of a real, even series: the inverse, but for a factor
  std::vector<double> r(n / 2 + 1);
  const double scale = values[0].real() / static_cast<double>(n);
  if (!(scale > 0)) return {};
  for (std::size_t lag = 0; lag < r.size(); ++lag) r[lag] = values[lag].real() / static_cast<double>(n - lag) / scale;
  return r;
}

// Less its mean and its line of least squares. What stays within `rounding` becomes 0.
std::vector<double> detrended(const std::vector<double>& series, double rounding) {
  const auto n = static_cast<double>(series.size());
  double mean = 0, slope = 0;
  for (const double y : series) mean += y / n;
  const double middle = (n - 1) / 2;
  for (std::size_t i = 0; i < series.size(); ++i) slope += (static_cast<double>(i) - middle) * (series[i] - mean);
  slope /= n * (n * n - 1) / 12;
  std::vector<double> rest(series.size());
  double most = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    rest[i] = series[i] - mean - slope * (static_cast<double>(i) - middle);
    most = std::max(most, std::abs(rest[i]));
  }
  if (most <= rounding) std::fill(rest.begin(), rest.end(), 0.0);
  return rest;
}

// How far above chance an autocorrelation stands. Neighbours that are alike count less: Bartlett's variance of r is
// (1 + 2 sum r_k^2) / n, here over the lags up to that where r first falls below 0 (`run`).
struct NoiseThreshold {
  double pairs_each = 1, limit = 0;
  NoiseThreshold(const std::vector<double>& r, std::size_t run, std::size_t n) {
    for (std::size_t k = 1; k <= run && k < r.size(); ++k) pairs_each += 2 * r[k] * r[k];
    // The highest of m independent normal values is about sqrt(2 ln m).
    const double independent = static_cast<double>(n) / (2 * static_cast<double>(std::max<std::size_t>(run, 1)));
    limit = std::sqrt(2 * std::log(std::max(independent, 2.0))) + 0.5;
  }
  bool exceeded(double value, std::size_t pairs) const {
    return value * std::sqrt(static_cast<double>(pairs) / pairs_each) > limit;
  }
};

std::size_t period_of(const std::vector<double>& series) {
  const std::vector<double> r = autocorrelation(series);
  if (r.empty()) return 0;
  std::size_t run = 1;  // a series resembles itself at short lags; periods begin after that
  while (run < r.size() && r[run] > 0) ++run;
  const NoiseThreshold chance(r, run, series.size());
  double highest = 0;
  std::vector<std::size_t> peaks;
  for (std::size_t lag = std::max<std::size_t>(run, 2); lag + 1 < r.size() && 3 * lag <= series.size() + 1; ++lag) {
    if (r[lag] < r[lag - 1] || r[lag] < r[lag + 1]) continue;
    if (!chance.exceeded(r[lag], series.size() - lag)) continue;
    peaks.push_back(lag);
    highest = std::max(highest, r[lag]);
  }
  // Two periods correlate about as one does: the shortest of those that are nearly best.
  for (const std::size_t lag : peaks)
    if (r[lag] >= 0.9 * highest) return lag;
  return 0;
}

}  // namespace

std::size_t find_period(const std::vector<double>& series) {
  if (series.size() < 6) return 0;
  double largest = 0;
  for (const double y : series) largest = std::max(largest, std::abs(y));
  const double rounding = 1e-9 * largest;
  if (const std::size_t period = period_of(detrended(series, rounding)); period > 0) return period;
  // A jump in level (a warm-up) hides the season; what was allocated and freed at each sample still shows it.
  std::vector<double> changes(series.size() - 1);
  for (std::size_t i = 0; i < changes.size(); ++i) changes[i] = series[i + 1] - series[i];
  return period_of(detrended(changes, rounding));
}

}  // namespace memwall
