#include "sim/byte_units.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace memwall {

double bytes_of_unit(std::string_view name) {
  for (const std::span<const ScaledUnit> units : {std::span(kDecimalBytes), std::span(kBinaryBytes)})
    for (const ScaledUnit& unit : units)
      if (unit.name == name) return unit.factor;
  return 0;
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const double unit = bytes_of_unit(text.empty() ? "B" : text == "KB" ? "kB" : text);
  if (unit == 0 || !(number >= 0 && number * unit <= 0x1p62)) return std::nullopt;
  return static_cast<Bytes>(std::llround(number * unit));
}

std::string exact_bytes_text(Bytes bytes, std::string_view between) {
  std::size_t unit = 0;
  for (; bytes != 0 && bytes % 1024 == 0 && unit + 1 < kBinaryBytes.size(); bytes /= 1024) ++unit;
  return std::to_string(bytes).append(between).append(kBinaryBytes[unit].name);
}

std::string gigabytes_text(Bytes bytes) { return fixed_text(static_cast<double>(bytes) * 1e-9, 3) + " GB"; }

}  // namespace memwall
