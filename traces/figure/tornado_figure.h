// What moves an outcome most: for each quantity a bar from the outcome at one end of it to that at the other, around
// the outcome at a base point.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "traces/figure/figure.h"
#include "traces/figure/number_axis.h"

namespace memwall {

struct TornadoEnd {
  std::string value;   // of the quantity, as it is typed: "16GB/s"
  double outcome = 0;  // there
};

struct TornadoBar {
  std::string name;        // of the quantity: "pcie"
  std::string base_value;  // its value at the base point
  TornadoEnd low, high;    // in either order
  std::string note{};      // "1 of 5 failed"
};

struct TornadoChart {
  std::string title, subtitle;
  NumberAxis outcome{};
  double base = 0;          // outcome at the base point
  std::string base_name{};  // "the best point"
  std::vector<TornadoBar> bars{};
};

// The widest bar stands first, of equals in the order in which they are given; at most kMostBars are drawn, and the
// others counted. What is less than the base has another colour than what is more. REQUIRES: numbers as AxisLayout.
inline constexpr std::size_t kMostBars = 40;
Figure draw_tornado(const TornadoChart& chart);

}  // namespace memwall
