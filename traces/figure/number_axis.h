// An axis of numbers: what it counts, linear or logarithmic, where its ticks stand and what they say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/figure/figure.h"
#include "traces/figure/plot.h"

namespace memwall {

enum class Measure : std::uint8_t { number, seconds, bytes, binary_bytes, share };

// In what numbers count. `suffix` stands behind the unit: "/s"; of plain numbers it is the unit itself: "J".
struct AxisUnit {
  Measure measure = Measure::number;
  std::string suffix{};
};

// For people, with its unit: "12.3 ms", "39.3 GB/s", "8 GiB", "20 %", "1.2 million J". REQUIRES: finite.
std::string number_text(const AxisUnit& unit, double value, int digits = 3);

// `automatic`: logarithmic where all values are more than 0 and the largest is many times the least.
enum class AxisScaling : std::uint8_t { automatic, linear, logarithmic };

struct NumberAxis {
  std::string name{};  // "step time"
  AxisUnit unit{};
  AxisScaling scaling = AxisScaling::automatic;
  std::string remark{};        // behind the unit: "less is better"
  bool begins_at_zero = true;  // a linear one, where 0 is not far from its values
};

// Do they stand at more equal distances by their logarithms than by themselves? Of at least three positive ones.
bool stand_by_factors(std::vector<double> values);

namespace plot {

struct AxisTick {
  double at = 0;  // in points
  std::string text;
};

// An axis laid out for values: from `from` to `to`, in points, with room beyond the outermost values. A logarithmic one
// that was asked for is linear where a value is not more than 0, and says so.
class AxisLayout {
 public:
  // REQUIRES: values are finite, and less than 1e200 away from 0.
  AxisLayout(const NumberAxis& axis, const std::vector<double>& values, double from, double to);

  double operator()(double value) const;
  bool is_logarithmic() const { return is_logarithmic_; }
  // Round numbers, about `most` of them.
  std::vector<AxisTick> ticks(int most) const;
  // At these values.
  std::vector<AxisTick> ticks_at(const std::vector<double>& values) const;
  // "step time (ms, logarithmic), less is better"
  std::string label() const;

 private:
  void choose_linear(double least, double most);
  void choose_logarithmic(double least, double most);
  std::vector<double> logarithmic_ticks(int most) const;
  std::string tick_text(double value, double step) const;

  NumberAxis axis_;
  bool is_logarithmic_ = false, is_refused_ = false;
  bool has_own_units_ = false;  // each tick has its own: the axis spans too much for one
  double low_ = 0, high_ = 1, from_ = 0, to_ = 1, factor_ = 1;
  std::string unit_name_;
};

// Grid lines from an axis at the bottom, with the texts of those ticks that do not touch the one before, and the label.
// They take kBelowAxis below the area.
inline constexpr double kBelowAxis = 42;
void draw_bottom_axis(Figure& figure, const Area& area, const std::vector<AxisTick>& ticks, const std::string& label);
// The same at the left, with the label along the axis at the margin of the page.
inline constexpr double kLeftOfAxis = 62;
void draw_left_axis(Figure& figure, const Area& area, const std::vector<AxisTick>& ticks, const std::string& label);

}  // namespace plot
}  // namespace memwall
