// Numbers and names as a chart of a study may meet them: equal, negative, far apart, long, hostile.
#pragma once

#include <cmath>
#include <random>
#include <string>

#include "traces/figure/number_axis.h"
#include "traces/figure/series_marks.h"

namespace memwall {

class RandomChart {
 public:
  explicit RandomChart(unsigned seed) : random_(seed), magnitude_(static_cast<int>(below(24)) - 12), sign_(below(3)) {}

  std::size_t below(std::size_t n) { return random_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }

  double number() {
    if (one_in(6)) return 0;
    if (one_in(4)) return std::pow(10, magnitude_);  // equal values
    const double size = std::pow(10, magnitude_ + static_cast<double>(below(4000)) / 1000);
    return sign_ == 0 || (sign_ == 1 && one_in(2)) ? -size : size;
  }

  std::string name() {
    static const std::string kAlphabet = "abcdefghijklmno <>&\"'=:,./\xc3\xa9\xff\x01";
    const std::size_t lengths[] = {0, 1, 5, 12, 40, 300};
    std::string text;
    for (std::size_t left = lengths[below(6)]; left > 0; --left) text += kAlphabet[below(kAlphabet.size())];
    return text;
  }

  PointState state() { return one_in(4) ? PointState::failed : one_in(4) ? PointState::misses : PointState::meets; }

  NumberAxis axis() {
    NumberAxis axis{.name = name()};
    axis.unit.measure = static_cast<Measure>(below(5));
    if (one_in(3)) axis.unit.suffix = "/s";
    axis.scaling = static_cast<AxisScaling>(below(3));
    return axis;
  }

 private:
  std::mt19937 random_;
  int magnitude_;
  std::size_t sign_;
};

}  // namespace memwall
