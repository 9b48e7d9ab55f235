#include "sim/number_text.h"

#include <cassert>
#include <charconv>
#include <cmath>

namespace memwall {
namespace {

template <class... Format>
std::string converted(double number, Format... format) {
  char text[352];  // the largest double has 309 digits before the point
  return {text, std::to_chars(text, text + sizeof text, number, format...).ptr};
}

// Where a number rounds up to the next power of ten: 0.9995 for 3 digits.
double rounds_to_one(int digits) { return 1 - 0.5 * std::pow(10, -digits); }

}  // namespace

std::string shortest_text(double number) { return converted(number); }

std::string plain_number(double number) {
  const double size = std::abs(number);
  const bool fixed = size == 0 || (size >= 1e-4 && size < 1e16);
  return converted(number, fixed ? std::chars_format::fixed : std::chars_format::scientific);
}

std::string fixed_text(double number, int decimals) { return converted(number, std::chars_format::fixed, decimals); }

std::string percent_text(double share) { return fixed_text(100 * share, 1) + " %"; }

std::string grouped_text(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

const ScaledUnit& unit_for(double value, std::span<const ScaledUnit> units, int digits) {
  assert(!units.empty());
  std::size_t i = 0;
  while (i + 1 < units.size() && std::abs(value) >= units[i + 1].factor * rounds_to_one(digits)) ++i;
  return units[i];
}

// Bytes and picoseconds are counted; of any other unit there may be parts.
static bool is_counted(const ScaledUnit& unit) { return unit.factor == 1 || unit.factor == 1e-12; }

std::string scaled_text(double value, std::span<const ScaledUnit> units, int digits, TrailingZeros zeros) {
  const ScaledUnit& unit = unit_for(value, units, digits);
  const double shown = value / unit.factor;
  std::string text;
  if (zeros == TrailingZeros::dropped) {
    text = converted(shown, std::chars_format::general, digits);
  } else {
    int decimals = &unit == &units.front() && is_counted(unit) && std::floor(shown) == shown ? 0 : digits - 1;
    for (double limit = 10 * rounds_to_one(digits); decimals > 0 && std::abs(shown) >= limit; limit *= 10) --decimals;
    text = fixed_text(shown, decimals);
  }
  return text.append(" ").append(unit.name);
}

}  // namespace memwall
