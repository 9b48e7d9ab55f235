#include "traces/figure/number_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "sim/byte_units.h"
#include "traces/figure/axis.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

// As time_unit() has them, and what is shorter still.
constexpr std::array kAxisTimes{ScaledUnit{1e-12, "ps"}, ScaledUnit{1e-9, "ns"}, ScaledUnit{1e-6, "\xc2\xb5s"},
                                ScaledUnit{1e-3, "ms"}, ScaledUnit{1, "s"}};
constexpr std::array kPlain{ScaledUnit{1e-9, "billionths"}, ScaledUnit{1e-6, "millionths"}, ScaledUnit{1, ""},
                            ScaledUnit{1e6, "million"},     ScaledUnit{1e9, "billion"},     ScaledUnit{1e12, "10^12"},
                            ScaledUnit{1e15, "10^15"},      ScaledUnit{1e18, "10^18"}};
constexpr std::array kPercent{ScaledUnit{0.01, "%"}};
constexpr double kLogarithmicFrom = 30;  // largest value by least, of an axis that chooses
constexpr double kOwnUnitsFrom = 2e4;    // likewise, from where on one unit does not suit all
constexpr double kMostInFull = 1e6;      // of a number on an axis
constexpr double kRoom = 0.06;           // of the range, beyond the outermost values
constexpr double kFromZero = 0.4;        // least value by largest, below which a linear axis begins at 0
constexpr double kLeastRange = 0.02;     // of a linear axis, of its largest value: what differs by less looks alike

std::span<const ScaledUnit> units_of(Measure measure) {
  switch (measure) {
    case Measure::seconds:
      return kAxisTimes;
    case Measure::bytes:
      return kDecimalBytes;
    case Measure::binary_bytes:
      return kBinaryBytes;
    case Measure::share:
      return kPercent;
    case Measure::number:
      break;
  }
  return kPlain;
}

ScaledUnit unit_near(const AxisUnit& unit, double value) {
  const double size = std::abs(value);
  // Small plain numbers keep their zeros: 0.0123, but 1.2 millionths.
  if (unit.measure == Measure::number && size < 1e6 && (size == 0 || size >= 1e-3)) return {1, ""};
  return unit_for(size, units_of(unit.measure), 3);
}

// What stands behind a number of that unit: "GB/s", "million J".
std::string name_of(const AxisUnit& unit, const ScaledUnit& scaled) {
  const bool is_apart = unit.measure == Measure::number && *scaled.name != '\0' && !unit.suffix.empty();
  return std::string(scaled.name) + (is_apart ? " " : "") + unit.suffix;
}

}  // namespace

std::string number_text(const AxisUnit& unit, double value, int digits) {
  const ScaledUnit scaled = unit_near(unit, value);
  const std::string name = value == 0 && unit.measure == Measure::seconds ? "s" + unit.suffix : name_of(unit, scaled);
  const double number = value / scaled.factor;
  const double size = std::abs(number);
  const bool is_in_full = size >= std::pow(10, digits) && size < 1e6;
  const std::string text = is_in_full ? fmt::format("{:.0f}", number) : fmt::format("{:.{}g}", number, digits);
  return name.empty() ? text : text + " " + name;
}

bool stand_by_factors(std::vector<double> values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() < 3 || !(values.front() > 0) || values.back() < 4 * values.front()) return false;
  const auto unevenness = [&](const auto& place) {
    double least = INFINITY, most = 0;
    for (std::size_t i = 1; i < values.size(); ++i) {
      const double gap = place(values[i]) - place(values[i - 1]);
      least = std::min(least, gap), most = std::max(most, gap);
    }
    return most / least;
  };
  return 1.2 * unevenness([](double v) { return std::log(v); }) < unevenness([](double v) { return v; });
}

namespace plot {

AxisLayout::AxisLayout(const NumberAxis& axis, const std::vector<double>& values, double from, double to)
    : axis_(axis), from_(from), to_(to) {
  const auto [least, most] = values.empty() ? std::pair(0.0, 1.0) : [&] {
    const auto ends = std::ranges::minmax_element(values);
    return std::pair(*ends.min, *ends.max);
  }();
  const bool is_asked = axis.scaling == AxisScaling::logarithmic;
  is_refused_ = is_asked && least <= 0;
  is_logarithmic_ =
      least > 0 && (is_asked || (axis.scaling == AxisScaling::automatic && most / least > kLogarithmicFrom));
  is_logarithmic_ ? choose_logarithmic(least, most) : choose_linear(least, most);
  has_own_units_ = is_logarithmic_ && high_ / low_ > kOwnUnitsFrom;
  const ScaledUnit unit = unit_near(axis_.unit, std::max(std::abs(low_), std::abs(high_)));
  factor_ = unit.factor;
  unit_name_ = name_of(axis_.unit, unit);
}

void AxisLayout::choose_linear(double least, double most) {
  const double size = std::max({std::abs(least), std::abs(most), 1e-30});
  const double room = std::max((most - least) * kRoom, size * kLeastRange / 2);
  low_ = least - room, high_ = most + room;
  const double nearness = axis_.begins_at_zero ? kFromZero : 0;
  if (least >= 0 && (least <= nearness * most || low_ < 0)) low_ = 0;
  if (most <= 0 && (most >= nearness * least || high_ > 0)) high_ = 0;
}

void AxisLayout::choose_logarithmic(double least, double most) {
  const double room = std::max(std::pow(most / least, kRoom), 1.1);
  low_ = least / room, high_ = most * room;
}

double AxisLayout::operator()(double value) const {
  if (is_logarithmic_) return LogScale{low_, high_, from_, to_}(std::max(value, low_));
  return Scale{low_, high_, from_, to_}(value);
}

// 1, 1.5, 2, 3, 5, 7 times powers of ten where few powers are in sight, then 1, 2, 5, then 1, then some of the powers.
std::vector<double> AxisLayout::logarithmic_ticks(int most) const {
  const double low = low_ / factor_, high = high_ / factor_;
  const auto first = static_cast<int>(std::floor(std::log10(low))),
             last = static_cast<int>(std::ceil(std::log10(high)));
  static const std::vector<double> kDigits[] = {
      {1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9}, {1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1}};
  for (int every = 1;; ++every)
    for (const std::vector<double>& digits : kDigits) {
      if (every > 1 && digits.size() > 1) continue;
      std::vector<double> found;
      for (int power = first; power <= last; ++power) {
        if ((power % every + every) % every != 0) continue;
        for (const double digit : digits) {
          const double tick = digit * std::pow(10, power);
          if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) found.push_back(tick * factor_);
        }
      }
      if (found.size() <= static_cast<std::size_t>(most)) return found;
    }
}

std::string AxisLayout::tick_text(double value, double step) const {
  if (has_own_units_) return number_text(axis_.unit, value);
  const double number = value / factor_;
  if (std::max(std::abs(low_), std::abs(high_)) / factor_ >= kMostInFull) return fmt::format("{:.3g}", number);
  if (step > 0) return format_tick(number, step);
  const double size = std::abs(number);
  return size >= 1000  ? format_tick(number, 1)
         : size >= 100 ? fmt::format("{:.4g}", number)
                       : fmt::format("{:.3g}", number);
}

std::vector<AxisTick> AxisLayout::ticks(int most) const {
  most = std::max(most, 2);
  std::vector<AxisTick> found;
  const AxisLayout& place = *this;
  if (is_logarithmic_) return ticks_at(logarithmic_ticks(most));
  const double step = nice_step((high_ - low_) / factor_, most - 1);
  for (const double tick : nice_ticks(low_ / factor_, high_ / factor_, most))
    found.push_back({place(tick * factor_), tick_text(tick * factor_, step)});
  return found;
}

std::vector<AxisTick> AxisLayout::ticks_at(const std::vector<double>& values) const {
  std::vector<AxisTick> found;
  for (const double value : values) found.push_back({(*this)(value), tick_text(value, 0)});
  return found;
}

std::string AxisLayout::label() const {
  std::string inside = has_own_units_ ? axis_.unit.suffix : unit_name_;
  if (has_own_units_ && axis_.unit.measure != Measure::number) inside.clear();
  const char* how = is_logarithmic_ ? "logarithmic" : is_refused_ ? "not logarithmic: some are 0 or less" : "";
  if (*how != '\0') inside += (inside.empty() ? "" : ", ") + std::string(how);
  return axis_.name + (inside.empty() ? "" : " (" + inside + ")") + (axis_.remark.empty() ? "" : ", " + axis_.remark);
}

void draw_bottom_axis(Figure& figure, const Area& area, const std::vector<AxisTick>& ticks, const std::string& label) {
  double free_from = 0;
  for (const AxisTick& tick : ticks) {
    const std::string text = fit_text(tick.text, std::max(area.width / 3, 40.0), kSmallSize);
    const double half = text_width(text, kSmallSize) / 2;
    const double middle = std::clamp(tick.at, half + 2, std::max(half + 2, figure.width - half - 2));
    figure.add(Line{{tick.at, area.top}, {tick.at, area.bottom()}, palette::kGrid, 0.75});
    if (middle - half < free_from) continue;
    free_from = middle + half + 5;
    figure.add(Line{{tick.at, area.bottom()}, {tick.at, area.bottom() + 4}, palette::kAxis, 0.75});
    figure.add(Text{{middle, area.bottom() + 16}, text, kSmallSize, Anchor::middle, palette::kText});
  }
  figure.add(Line{{area.left, area.bottom()}, {area.right(), area.bottom()}, palette::kAxis, 0.75});
  figure.add(GroupBegin{label});
  figure.add(Text{{area.left + area.width / 2, area.bottom() + 34},
                  fit_text(label, area.width, kLabelSize),
                  kLabelSize,
                  Anchor::middle,
                  palette::kFaintText});
  figure.add(GroupEnd{});
}

void draw_left_axis(Figure& figure, const Area& area, const std::vector<AxisTick>& ticks, const std::string& label) {
  double free_below = figure.height + area.bottom() + 100;
  for (const AxisTick& tick : ticks) {
    figure.add(Line{{area.left, tick.at}, {area.right(), tick.at}, palette::kGrid, 0.75});
    if (tick.at + 5 > free_below) continue;
    free_below = tick.at - 7;
    figure.add(Text{{area.left - 5, tick.at + 3.5},
                    fit_text(tick.text, area.left - kMargin - 16, kSmallSize),
                    kSmallSize,
                    Anchor::end,
                    palette::kText});
  }
  figure.add(Line{{area.left, area.top}, {area.left, area.bottom()}, palette::kAxis, 0.75});
  figure.add(GroupBegin{label});
  figure.add(Text{{kMargin + 8, area.top + area.height / 2},
                  fit_text(label, area.height, kLabelSize),
                  kLabelSize,
                  Anchor::middle,
                  palette::kFaintText,
                  false,
                  90});
  figure.add(GroupEnd{});
}

}  // namespace plot
}  // namespace memwall
