#include "traces/figure/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace memwall {
namespace {

// As kTimeUnits names them, but for the sign of a microsecond.
constexpr std::array kTimes{ScaledUnit{1e-9, "ns"}, ScaledUnit{1e-6, "\xc2\xb5s"}, ScaledUnit{1e-3, "ms"},
                            ScaledUnit{1, "s"}};
constexpr int kDigits = 3;

}  // namespace

double LogScale::operator()(double value) const {
  return from + std::log(value / low) / std::log(high / low) * (to - from);
}

std::vector<double> decade_ticks(double low, double high) {
  assert(low > 0 && low <= high);
  std::vector<double> ticks;
  const auto first = static_cast<int>(std::ceil(std::log10(low) - 1e-9));
  const auto last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
  for (int power = first; power <= last; ++power) ticks.push_back(std::pow(10, power));
  return ticks;
}

ScaledUnit time_unit(double largest_seconds) { return unit_for(largest_seconds, kTimes, kDigits); }
ScaledUnit byte_unit(double largest) { return unit_for(largest, kDecimalBytes, kDigits); }

double nice_step(double range, int most) {
  assert(most >= 1);
  if (!(range > 0)) return 1;
  const double least = range / most;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0})
    if (digit * power >= least * (1 - 1e-9)) return digit * power;
  return 10 * power;
}

std::vector<double> nice_ticks(double low, double high, int most) {
  assert(low <= high);
  const double step = nice_step(high - low, most - 1);
  std::vector<double> ticks;
  // Counted in steps, not added up: ten times 0.1 is not 1.
  const double slack = 1e-9 * (high - low) / step;
  for (double i = std::ceil(low / step - slack); i * step <= high + slack * step; ++i)
    ticks.push_back(i == 0 ? 0 : i * step);
  return ticks;
}

std::string format_tick(double value, double step) {
  const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  std::string text = fmt::format("{:.{}f}", value, decimals);
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::size_t first = text[0] == '-' ? 1 : 0;
  if (point - first > 4)
    for (std::size_t at = point; at > first + 3; at -= 3) text.insert(at - 3, "\xe2\x80\x89");
  return text;
}

std::string format_decade(double value) {
  const auto power = static_cast<int>(std::lround(std::log10(value)));
  if (power < 0) return fmt::format("{:.{}f}", value, -power);
  static constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  const int group = std::min(power / 3, 6);
  return fmt::format("{:.0f}{}", std::pow(10, power - 3 * group), kPrefixes[group]);
}

std::string format_time(Duration time) {
  return time.count() == 0 ? "0 s" : scaled_text(to_seconds(time), kTimes, kDigits);
}
std::string format_time(const DurationSum& sum) {
  return sum == Duration{} ? "0 s" : scaled_text(sum.seconds(), kTimes, kDigits);
}
std::string format_bytes(double bytes) { return scaled_text(bytes, kDecimalBytes, kDigits); }

}  // namespace memwall
