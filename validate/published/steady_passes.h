// The time of a step of many micro-batches from steps of few: once a pipeline is full, and the host as far ahead as it
// gets, each further micro-batch takes as long as the one before. That it does is found, not assumed: steps of three
// numbers of micro-batches, equally far apart, must differ by the same.
#pragma once

#include <cstdint>
#include <functional>

namespace memwall {

struct StepGrowth {
  std::int64_t few = 0;         // micro-batches of the last step that was looked at; all of them where none was steady
  double seconds = 0;           // of that step
  double seconds_per_pass = 0;  // of each further micro-batch; 0 where none was steady
  double at(std::int64_t passes) const { return seconds + seconds_per_pass * static_cast<double>(passes - few); }
};

// Differences are the same that are within this share of each other.
inline constexpr double kSteadyShare = 2e-3;

// `seconds` of a step of so many micro-batches. Steps of `first`, `first` + `apart`, ... are looked at, until the last
// two differences agree; where the next step would have as many as `passes` or more, that one is looked at instead.
// REQUIRES: first, apart and passes at least 1.
StepGrowth step_growth(std::int64_t passes, std::int64_t first, std::int64_t apart,
                       const std::function<double(std::int64_t)>& seconds);

}  // namespace memwall
