// Numbers as text, the same in every locale.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace memwall {

// The shortest text that reads back to the same double: "1", "0.1", "1e+05". REQUIRES: finite.
std::string shortest_text(double number);
// Likewise, but without an exponent from 1e-4 up to 1e16: "100000". For JSON, CSV and tables.
std::string plain_number(double number);
// With so many digits behind the point: "12.50". REQUIRES: 0 <= decimals <= 20.
std::string fixed_text(double number, int decimals);
// "12.3 %"
std::string percent_text(double share);
// "1,234,567"
std::string grouped_text(std::uint64_t number);

// A unit in which a quantity is written: "1.5 GB" is 1.5 times the factor 1e9.
struct ScaledUnit {
  double factor;
  const char* name;
};
inline constexpr std::array kTimeUnits{ScaledUnit{1e-12, "ps"}, ScaledUnit{1e-9, "ns"}, ScaledUnit{1e-6, "us"},
                                       ScaledUnit{1e-3, "ms"}, ScaledUnit{1, "s"}};  // of seconds

// The largest unit of which `value`, rounded to `digits` significant digits, is at least 1; else the smallest.
// REQUIRES: units are ascending and not empty.
const ScaledUnit& unit_for(double value, std::span<const ScaledUnit> units, int digits);

enum class TrailingZeros : std::uint8_t { kept, dropped };

// For people, in the unit that fits: "39.30 GB" with 4 digits. Zeros at the end are kept, so that columns line up, but
// a whole number of the smallest unit has no decimals: "512 B".
std::string scaled_text(double value, std::span<const ScaledUnit> units, int digits,
                        TrailingZeros zeros = TrailingZeros::kept);

}  // namespace memwall
