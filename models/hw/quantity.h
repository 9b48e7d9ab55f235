// A number with its unit, as people write it: "3.35 TB/s", "40 GiB", "8.4 us", "0.85".
//
// Decimal prefixes are powers of ten (1 GB = 1e9 B), binary ones powers of two
// (1 GiB = 1024^3 B). A share has no unit, or "%"; a count has none.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

enum class Dimension : std::uint8_t {
  size,
  bandwidth,
  flop_rate,
  time,
  frequency,
  power,
  price_rate,
  size_price,
  energy_per_byte,
  share,
  ratio,
  count
};
// "a bandwidth", "a share": for sentences.
std::string_view to_string(Dimension dimension);
// A value that would be accepted, e.g. "3.35 TB/s".
std::string_view example(Dimension dimension);

// Why a text is not the wanted quantity: half a sentence without the place, which the caller knows.
class QuantityError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The number in base units: B, B/s, FLOP/s, s, Hz, W, $/h, $/B, pJ/B, 1.
// Negative numbers only for times (a latency measured from the end of a call may be negative).
// Throws QuantityError: not a number, unit missing, unknown or of another dimension, out of range.
double parse_quantity(std::string_view text, Dimension dimension);

// All units of a dimension, smallest first; empty for counts and ratios.
std::vector<std::string> units(Dimension dimension);

}  // namespace memwall
