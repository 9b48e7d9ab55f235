// An axis of a study: a name and the values that it takes, as one types them.
//
//   policy=none|checkpoint|offload:what=activations     a list
//   machine=a100-sxm-80gb,h100-sxm-80gb                 of machines and steps also by commas
//   batch=1..64                                         every whole number
//   batch=1..64:log:7                                   1, 2, 4, ... 64
//   link.pcie_h2d.bandwidth=16..64GB/s:log:9            with the unit of the last
//   fraction=0..1:5                                     evenly: 0, 0.25, ... 1
//   zero.stage=1|2|3 if policy=zero                     only where another axis has that value
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace memwall {

// From `low` to `high`, for samples between.
struct AxisRange {
  double low = 0, high = 0;
  bool is_logarithmic = false;
  bool is_whole = false;
  std::string unit{};
};

// Another axis's value that this one needs; values match whole, or up to their ":" (policy=offload); of policies joined
// by " + " each.
struct AxisCondition {
  std::string axis;
  std::vector<std::string> values;

  bool holds_for(const std::string& value) const;
};

struct Axis {
  std::string name;
  std::vector<std::string> values;  // at least one; those of a range, too
  std::optional<AxisRange> range{};
  std::optional<AxisCondition> condition{};
};

// More values of one axis are a mistake.
inline constexpr std::size_t kMostAxisValues = 1'000'000;

// Throws UsageError with the text, what was found and what was expected. Names are not looked up.
Axis parse_axis(const std::string& text);

// A value of a range, as it is typed: "16GB/s", "0.25", "7".
std::string range_value(const AxisRange& range, double value);

}  // namespace memwall
