#include "study/charts/axis_words.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "study/sweep/sweep.h"

namespace memwall {
namespace {

constexpr std::array<std::string_view, 5> kAxesOfFiles = {"step", "machine", "measured_on", "onto", "plan"};
constexpr std::array<std::string_view, 14> kEndings = {".mwt",    ".mwc",       ".gz",       ".zst",    ".json",
                                                       ".h5",     ".plan",      ".zip",      ".pickle", ".db",
                                                       ".sqlite", ".textproto", ".nsys-rep", ".tar"};

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTitles = {
    {{"peak_reserved_bytes", "peak of GPU memory"},
     {"peak_allocated_bytes", "peak of GPU memory, allocated"},
     {"missing_bytes", "missing GPU memory"},
     {"samples_per_s", "samples per second"},
     {"tokens_per_s", "tokens per second"},
     {"mfu", "model FLOP utilization"}}};
std::string without_ending(std::string text) {
  for (bool found = true; found;) {
    const auto ending = std::ranges::find_if(kEndings, [&](std::string_view e) { return text.ends_with(e); });
    found = ending != kEndings.end() && text.size() > ending->size();
    if (found) text.resize(text.size() - ending->size());
  }
  return text;
}

// With so many of the folders that it stands in.
std::string short_name(std::string value, std::size_t folders) {
  while (value.size() > 1 && value.ends_with('/')) value.pop_back();
  std::size_t slash = value.rfind('/');
  for (; folders > 0 && slash != std::string::npos && slash > 0; --folders) slash = value.rfind('/', slash - 1);
  return without_ending(slash == std::string::npos ? value : value.substr(slash + 1));
}

std::string title_of_field(std::string full) {
  for (const auto& [field, words] : kTitles)
    if (full == field) return std::string(words);
  for (const std::string_view unit : {"_bytes_per_s", "_per_s", "_bytes", "_joules", "_dollars", "_s"}) {
    if (!full.ends_with(unit)) continue;
    full.resize(full.size() - unit.size());
    if (unit == "_per_s") full += " per second";
    break;
  }
  for (char& c : full)
    if (c == '_' || c == '.') c = ' ';
  return full;
}

}  // namespace

std::map<std::string, std::string> value_names(const Axis& axis) {
  std::map<std::string, std::string> names;
  for (const std::string& value : axis.values) names[value] = value;
  // Takes the first that tells all values apart.
  const auto are_told_apart = [&](const auto& name) {
    std::map<std::string, std::string> shown = names;
    std::set<std::string> seen;
    for (auto& [value, own] : shown) seen.insert(own = name(value));
    if (seen.size() == shown.size()) names = std::move(shown);
    return seen.size() == names.size();
  };
  if (is_numeric(axis)) {
    const AxisUnit unit = number_axis_of(axis).unit;
    constexpr std::size_t kLongNumber = 7;
    const bool is_short =
        std::ranges::all_of(axis.values, [](const auto& value) { return value.size() < kLongNumber; });
    if (unit.measure == Measure::number && is_short) return names;
    constexpr int kFewest = 3, kMost = 9;
    for (int digits = kFewest; digits <= kMost; ++digits)
      if (are_told_apart([&](const auto& value) { return number_text(unit, typed_number(value)->value, digits); }))
        break;
  } else if (std::ranges::find(kAxesOfFiles, axis.name) != kAxesOfFiles.end()) {
    constexpr std::size_t kMostFolders = 20;
    for (std::size_t folders = 0; folders < kMostFolders; ++folders)
      if (are_told_apart([&](const std::string& value) { return short_name(value, folders); })) break;
  }
  return names;
}

bool is_numeric(const Axis& axis) {
  if (axis.range) return true;
  std::optional<FieldUnit> unit;
  for (const std::string& value : axis.values) {
    const std::optional<TypedNumber> number = typed_number(value);
    if (!number || (unit && !(*unit == number->unit))) return false;
    unit = number->unit;
  }
  return !axis.values.empty();
}

NumberAxis number_axis_of(const Axis& axis) {
  NumberAxis found{.name = axis.name};
  const auto all = [&](const auto& is) { return !axis.values.empty() && std::ranges::all_of(axis.values, is); };
  const std::optional<TypedNumber> first =
      typed_number(axis.values.empty() ? range_value(*axis.range, axis.range->low) : axis.values.front());
  found.unit = axis_unit_of(first ? first->unit : FieldUnit{});
  if (all([](const std::string& value) { return value.ends_with('%'); })) found.unit = {Measure::share};
  const bool is_binary = all([](const std::string& value) { return value.find("iB") != std::string::npos; });
  if (found.unit.measure == Measure::bytes && is_binary) found.unit.measure = Measure::binary_bytes;
  return found;
}

NumberAxis field_axis(const std::string& name) {
  const std::string full = full_field_name(name);
  NumberAxis axis{.name = title_of_field(full), .unit = axis_unit_of(unit_of_field(full))};
  if (unit_of_field(full) == FieldUnit{.seconds = -1}) axis.unit = {};  // the name says so
  return axis;
}

AxisUnit axis_unit_of(FieldUnit unit) {
  if (unit.is_plain()) return {};
  if (unit == FieldUnit{.seconds = 1}) return {Measure::seconds};
  if (unit == FieldUnit{.bytes = 1}) return {Measure::bytes};
  if (unit == FieldUnit{.seconds = -1, .bytes = 1}) return {Measure::bytes, "/s"};
  if (unit == FieldUnit{.seconds = -1, .joules = 1}) return {Measure::number, "W"};
  return {Measure::number, to_string(unit)};
}

}  // namespace memwall
