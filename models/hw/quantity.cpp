#include "models/hw/quantity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>

#include "sim/byte_units.h"
#include "sim/error.h"

namespace memwall {
namespace {

struct Unit {
  std::string name;
  Dimension dimension;
  double factor;
};

// Of each dimension ascending.
std::vector<Unit> all_units() {
  std::vector<Unit> units{
      Unit{"FLOP/s", Dimension::flop_rate, 1},
      Unit{"GFLOP/s", Dimension::flop_rate, 1e9},
      Unit{"TFLOP/s", Dimension::flop_rate, 1e12},
      Unit{"PFLOP/s", Dimension::flop_rate, 1e15},
      Unit{"ps", Dimension::time, 1e-12},
      Unit{"ns", Dimension::time, 1e-9},
      Unit{"us", Dimension::time, 1e-6},
      Unit{"ms", Dimension::time, 1e-3},
      Unit{"s", Dimension::time, 1},
      Unit{"Hz", Dimension::frequency, 1},
      Unit{"MHz", Dimension::frequency, 1e6},
      Unit{"GHz", Dimension::frequency, 1e9},
      Unit{"W", Dimension::power, 1},
      Unit{"kW", Dimension::power, 1e3},
      Unit{"$/h", Dimension::price_rate, 1},
      Unit{"$/GB", Dimension::size_price, 1e-9},
      Unit{"$/TB", Dimension::size_price, 1e-12},
      Unit{"pJ/B", Dimension::energy_per_byte, 1},
      Unit{"nJ/B", Dimension::energy_per_byte, 1e3},
      Unit{"%", Dimension::share, 0.01},
  };
  for (const bool rate : {false, true}) {
    for (std::size_t i = 0; i < kDecimalBytes.size(); ++i) {
      for (const ScaledUnit& unit : {kDecimalBytes[i], kBinaryBytes[i]}) {
        const std::string name = unit.name + std::string(rate ? "/s" : "");
        if (units.back().name != name)  // the byte is in both lists
          units.push_back({name, rate ? Dimension::bandwidth : Dimension::size, unit.factor});
      }
    }
  }
  units.push_back({"PB", Dimension::size, 1e15});  // of what drives are written in their life
  return units;
}

const std::vector<Unit>& known_units() {
  static const std::vector<Unit> known = all_units();
  return known;
}

const Unit* find_unit(std::string_view name) {
  for (const Unit& unit : known_units())
    if (unit.name == name) return &unit;
  return nullptr;
}

std::string all_units_sentence(Dimension dimension) { return fmt::format("{}", fmt::join(units(dimension), ", ")); }

bool needs_unit(Dimension d) { return d != Dimension::share && d != Dimension::ratio && d != Dimension::count; }

[[noreturn]] void bad_unit(std::string_view text, std::string_view name, Dimension dimension) {
  std::vector<std::string> known;
  for (const Unit& unit : known_units()) known.emplace_back(unit.name);
  std::string near = nearest_name(std::string(name), units(dimension));
  if (near.empty()) near = nearest_name(std::string(name), known);
  throw QuantityError(fmt::format("\"{}\" has the unknown unit \"{}\"{}; expected {} in one of {}", text, name,
                                  near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), to_string(dimension),
                                  all_units_sentence(dimension)));
}

// The factor of the unit part. Throws where it does not fit the dimension.
double unit_factor(std::string_view text, std::string_view name, Dimension dimension) {
  if (name.empty()) {
    if (needs_unit(dimension))
      throw QuantityError(fmt::format("\"{}\" has no unit; expected {} such as \"{}\"", text, to_string(dimension),
                                      example(dimension)));
    return 1;
  }
  if (dimension == Dimension::count || dimension == Dimension::ratio)
    throw QuantityError(fmt::format("\"{}\" has the unit \"{}\"; expected {} without unit such as \"{}\"", text, name,
                                    to_string(dimension), example(dimension)));
  const Unit* unit = find_unit(name);
  if (!unit) bad_unit(text, name, dimension);
  if (unit->dimension != dimension)
    throw QuantityError(fmt::format("\"{}\" is {}; expected {} such as \"{}\"", text, to_string(unit->dimension),
                                    to_string(dimension), example(dimension)));
  return unit->factor;
}

void check_range(std::string_view text, double value, Dimension dimension) {
  const auto refuse = [&](std::string_view expected) {
    throw QuantityError(fmt::format("\"{}\" is out of range; expected {}", text, expected));
  };
  if (dimension == Dimension::time) {
    if (std::abs(value) > 1e6) refuse("a time of at most 1e6 s");
    return;
  }
  if (value < 0) refuse("a number that is not negative");
  if (dimension == Dimension::size && value > 0x1p60) refuse("at most 2^60 B");
  if (dimension == Dimension::bandwidth && (value <= 0 || value > 1e18)) refuse("more than 0 and at most 1e18 B/s");
  if (dimension == Dimension::ratio && (value <= 0 || value > 1e6)) refuse("a ratio above 0 and at most 1e6");
  if (dimension == Dimension::share && (value <= 0 || value > 1)) refuse("a share above 0 and at most 1 (or 100 %)");
  if (dimension == Dimension::count && (value != std::floor(value) || value > 1e9)) refuse("a whole number up to 1e9");
}

}  // namespace

std::string_view to_string(Dimension dimension) {
  constexpr std::string_view names[] = {"a size",  "a bandwidth",      "a rate of floating-point operations",
                                        "a time",  "a frequency",      "a power",
                                        "a price", "a price per size", "an energy per byte",
                                        "a share", "a ratio",          "a count"};
  return names[static_cast<std::size_t>(dimension)];
}

std::string_view example(Dimension dimension) {
  constexpr std::string_view examples[] = {"80 GiB",   "3.35 TB/s", "989 TFLOP/s", "8.4 us", "1.98 GHz", "700 W",
                                           "2.49 $/h", "3 $/GB",    "62.5 pJ/B",   "0.85",   "2.0",      "132"};
  return examples[static_cast<std::size_t>(dimension)];
}

std::vector<std::string> units(Dimension dimension) {
  std::vector<std::string> names;
  for (const Unit& unit : known_units())
    if (unit.dimension == dimension) names.emplace_back(unit.name);
  return names;
}

double parse_quantity(std::string_view text, Dimension dimension) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number))
    throw QuantityError(fmt::format("\"{}\" does not begin with a number; expected {} such as \"{}\"", text,
                                    to_string(dimension), example(dimension)));
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  const double value = number * unit_factor(text, unit, dimension);
  check_range(text, value, dimension);
  return value;
}

}  // namespace memwall
