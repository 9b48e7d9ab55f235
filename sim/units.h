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

// Rounds to the nearest picosecond. REQUIRES: |s| < 9.2e6.
inline Duration from_seconds(double s) { return Duration(std::llround(s * 1e12)); }
inline Duration from_microseconds(double us) { return Duration(std::llround(us * 1e6)); }

constexpr double to_seconds(Duration d) { return static_cast<double>(d.count()) * 1e-12; }
constexpr double to_microseconds(Duration d) { return static_cast<double>(d.count()) * 1e-6; }

constexpr Bytes KiB(Bytes n) { return n << 10; }
constexpr Bytes MiB(Bytes n) { return n << 20; }
constexpr Bytes GiB(Bytes n) { return n << 30; }

}  // namespace memwall
