// Quantiles of a sample. `share` is from 0 to 1; every function REQUIRES that values are not empty.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <vector>

namespace memwall {

// The value that stands at `index` once they are sorted.
template <class Value>
Value value_of_rank(std::vector<Value> values, std::size_t index) {
  assert(index < values.size());
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// By nearest rank: the smallest value that at least this share of all do not exceed.
template <class Value>
Value lower_quantile(std::vector<Value> values, double share) {
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const std::size_t last = values.size() - 1;
  return value_of_rank(std::move(values), std::min(last, static_cast<std::size_t>(std::max(rank, 1.0)) - 1));
}

// The smallest value that more than this share of all do not exceed. Of an even number, the upper of the two medians.
template <class Value>
Value upper_quantile(std::vector<Value> values, double share) {
  const auto index = static_cast<std::size_t>(share * static_cast<double>(values.size()));
  const std::size_t last = values.size() - 1;
  return value_of_rank(std::move(values), std::min(last, index));
}
template <class Value>
Value upper_median(std::vector<Value> values) {
  return upper_quantile(std::move(values), 0.5);
}

// On the line between the two nearest values.
inline double interpolated_quantile(std::vector<double> values, double share) {
  assert(!values.empty());
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - static_cast<double>(below));
}

// The middle value, or the mean of the two in the middle.
inline double median(std::vector<double> values) {
  assert(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

}  // namespace memwall
