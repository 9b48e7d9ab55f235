// Time and size, as every layer of memwall counts them.
//
// Time is an integer number of picoseconds: sums are exact, and equal instants
// compare equal. An int64 of picoseconds spans +-106 days. Sizes are bytes in a
// signed 64-bit integer, so that differences are ordinary numbers.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>

namespace memwall {

// A span of time, or an instant counted from the start of the simulation.
using Duration = std::chrono::duration<std::int64_t, std::pico>;
using Time = Duration;

// A number of bytes. May be negative where a difference is meant.
using Bytes = std::int64_t;

inline constexpr Time kNever{std::numeric_limits<std::int64_t>::max()};

constexpr Duration picoseconds(std::int64_t n) { return Duration(n); }
constexpr Duration nanoseconds(std::int64_t n) { return Duration(n * 1'000); }
constexpr Duration microseconds(std::int64_t n) { return Duration(n * 1'000'000); }

// All times of one simulation, added up, stay below this (53 days): sums and differences of two are then numbers, too.
// What reads, scales, prices or simulates refuses more with a sentence.
inline constexpr Duration kLongestTime{std::int64_t{1} << 62};

// Rounds to the nearest picosecond. What is beyond kLongestTime, or no number, becomes kLongestTime (or its negative):
// never a time of the other sign.
inline Duration from_picoseconds(double ps) {
  constexpr auto kMost = static_cast<double>(kLongestTime.count());
  if (ps > -kMost && ps < kMost) return Duration(std::llround(ps));
  return ps < 0 ? -kLongestTime : kLongestTime;
}
inline Duration from_seconds(double s) { return from_picoseconds(s * 1e12); }
inline Duration from_microseconds(double us) { return from_picoseconds(us * 1e6); }
// d * factor, rounded and limited as from_picoseconds does.
inline Duration scaled_time(Duration d, double factor) {
  return factor == 1 ? d : from_picoseconds(static_cast<double>(d.count()) * factor);
}

constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-12; }
constexpr double to_microseconds(Duration d) { return static_cast<double>(d.count()) * 1e-6; }

constexpr Bytes KiB(Bytes n) { return n << 10; }
constexpr Bytes MiB(Bytes n) { return n << 20; }
constexpr Bytes GiB(Bytes n) { return n << 30; }

}  // namespace memwall
