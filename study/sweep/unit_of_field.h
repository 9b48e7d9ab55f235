// Units of fields as exponents of base units, so that expressions can be checked: the suffix of a field's name says
// its unit, as docs/run_json.md has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace memwall {

struct FieldUnit {
  std::int8_t seconds = 0, bytes = 0, joules = 0, dollars = 0;

  bool operator==(const FieldUnit&) const = default;
  bool is_plain() const { return *this == FieldUnit{}; }
};

constexpr FieldUnit operator*(FieldUnit a, FieldUnit b) {
  const auto sum = [](int x, int y) { return static_cast<std::int8_t>(x + y); };
  return {sum(a.seconds, b.seconds), sum(a.bytes, b.bytes), sum(a.joules, b.joules), sum(a.dollars, b.dollars)};
}
constexpr FieldUnit operator/(FieldUnit a, FieldUnit b) {
  const auto difference = [](int x, int y) { return static_cast<std::int8_t>(x - y); };
  return {difference(a.seconds, b.seconds), difference(a.bytes, b.bytes), difference(a.joules, b.joules),
          difference(a.dollars, b.dollars)};
}

// "step_time_s" is in seconds, "links.pcie_h2d.bandwidth_bytes_per_s" in bytes per second, "mfu" a plain number.
FieldUnit unit_of_field(std::string_view name);

// A number as it is typed: "40GiB" in bytes, "1.5ms" in seconds, "20%" as 0.2, "7". Nothing where it is none.
struct TypedNumber {
  double value = 0;
  FieldUnit unit{};
};
std::optional<TypedNumber> typed_number(const std::string& text);

// "s", "B", "B/s", "1/s", "1"; for columns and sentences.
std::string to_string(FieldUnit unit);

}  // namespace memwall
