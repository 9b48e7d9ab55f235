#include "study/sweep/unit_of_field.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <utility>

#include "models/hw/quantity.h"

namespace memwall {

FieldUnit unit_of_field(std::string_view name) {
  // The longer suffix first: "bytes_per_s" ends in "_s", too.
  static constexpr std::pair<std::string_view, FieldUnit> kSuffixes[] = {{"bytes_per_s", {.seconds = -1, .bytes = 1}},
                                                                         {"_per_s", {.seconds = -1}},
                                                                         {"_bytes", {.bytes = 1}},
                                                                         {"_joules", {.joules = 1}},
                                                                         {"_dollars", {.dollars = 1}},
                                                                         {"_s", {.seconds = 1}}};
  const std::string_view last = name.substr(name.rfind('.') + 1);
  for (const auto& [suffix, unit] : kSuffixes)
    if (last.ends_with(suffix)) return unit;
  if (last == "bytes") return {.bytes = 1};
  if (last == "seconds") return {.seconds = 1};
  return {};
}

std::optional<TypedNumber> typed_number(const std::string& text) {
  static constexpr std::pair<Dimension, FieldUnit> kUnits[] = {{Dimension::size, {.bytes = 1}},
                                                               {Dimension::bandwidth, {.seconds = -1, .bytes = 1}},
                                                               {Dimension::time, {.seconds = 1}},
                                                               {Dimension::power, {.seconds = -1, .joules = 1}},
                                                               {Dimension::share, {}}};
  char* end = nullptr;
  const double bare = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || !std::isfinite(bare)) return std::nullopt;
  if (*end == '\0') return TypedNumber{bare, {}};
  for (const auto& [dimension, unit] : kUnits) {
    try {
      return TypedNumber{parse_quantity(text, dimension), unit};
    } catch (const QuantityError&) {
    }
  }
  return std::nullopt;
}

std::string to_string(FieldUnit unit) {
  const std::pair<const char*, int> parts[] = {
      {"B", unit.bytes}, {"J", unit.joules}, {"$", unit.dollars}, {"s", unit.seconds}};
  std::string above, below;
  for (const auto& [name, exponent] : parts) {
    std::string& side = exponent > 0 ? above : below;
    if (exponent == 0) continue;
    if (!side.empty()) side += "*";
    side += std::abs(exponent) == 1 ? std::string(name) : fmt::format("{}^{}", name, std::abs(exponent));
  }
  if (below.empty()) return above.empty() ? "1" : above;
  return (above.empty() ? "1" : above) + "/" + below;
}

}  // namespace memwall
