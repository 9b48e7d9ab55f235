// A sum of times that may be longer than a Time can be: each of a run's ops may wait as long as the run lasts.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/units.h"

namespace memwall {

// Exact while the sum is below 2^63 seconds.
class DurationSum {
 public:
  DurationSum& operator+=(Duration time) {
    seconds_ += time.count() / kSecond;
    rest_ += time.count() % kSecond;  // of one sign or the other
    seconds_ += rest_ / kSecond;
    rest_ %= kSecond;
    return *this;
  }

  // Nothing where it is too long for one.
  std::optional<Duration> duration() const {
    constexpr std::int64_t kWhole = kLongestTime.count() / kSecond;
    if (seconds_ <= -kWhole || seconds_ >= kWhole) return std::nullopt;
    return Duration(seconds_ * kSecond + rest_);
  }
  double seconds() const {
    if (const auto time = duration()) return to_seconds(*time);
    return static_cast<double>(seconds_) + static_cast<double>(rest_) * 1e-12;
  }

  friend bool operator==(const DurationSum& a, const DurationSum& b) {
    return a.seconds_ == b.seconds_ && a.rest_ == b.rest_;
  }
  friend bool operator==(const DurationSum& a, Duration b) { return a == (DurationSum() += b); }

 private:
  static constexpr std::int64_t kSecond = 1'000'000'000'000;  // picoseconds
  std::int64_t seconds_ = 0, rest_ = 0;
};

inline double to_seconds(const DurationSum& sum) { return sum.seconds(); }

}  // namespace memwall
