#include "validate/bench/results_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "sim/byte_units.h"
#include "sim/utf8.h"

namespace memwall {
namespace {

constexpr int kDigits = 3;
constexpr std::array kFlops{ScaledUnit{1e9, "GFLOP/s"}, ScaledUnit{1e12, "TFLOP/s"}};
constexpr std::array kPercent{ScaledUnit{0.01, "%"}};

std::string rate_text(const Measurement& m) {
  std::string text;
  if (m.bytes_per_second() > 0)
    text = scaled_text(m.bytes_per_second(), std::span(kDecimalBytes).subspan(2), kDigits) + "/s";
  if (m.flops_per_second() > 0) text += (text.empty() ? "" : ", ") + scaled_text(m.flops_per_second(), kFlops, kDigits);
  return text;
}

std::string spread_text(const Measurement& m) {
  return m.median > 0 ? scaled_text((m.high - m.low) / m.median, kPercent, kDigits) : "";
}

std::string size_text(const std::string& text) {
  Bytes bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size() || bytes <= 0) return text;
  return bytes % 1024 == 0 ? exact_bytes_text(bytes, "") : text;
}

constexpr std::size_t kColumns = 6;
using TableLine = std::array<std::string, kColumns>;

TableLine line_of(const Measurement& m) {
  std::string note = m.note;
  std::replace(note.begin(), note.end(), '\n', ' ');
  if (m.status != MeasurementStatus::measured)
    return {m.benchmark, parameters_text(m), to_string(m.status), "", "", note};
  return {m.benchmark, parameters_text(m), figure_text(m.median, m.unit), rate_text(m), spread_text(m), note};
}

}  // namespace

std::string figure_text(double value, const std::string& unit) {
  if (unit == "s") return scaled_text(value, std::span(kTimeUnits).subspan(1), kDigits);
  if (unit == "B") return scaled_text(value, kDecimalBytes, kDigits);
  if (unit == "share") return scaled_text(value, kPercent, kDigits);
  return value == std::floor(value) && value < 1e15 ? plain_number(value) : fixed_text(value, 2);
}

std::string parameters_text(const Measurement& m) {
  std::string text;
  for (const auto& [key, value] : m.parameters) {
    const bool size = key == "bytes" || key == "working_set" || key == "block";
    text += (text.empty() ? "" : " ") + key + "=" + (size ? size_text(value) : value);
  }
  return text;
}

std::string results_table(const MeasurementSet& set) {
  if (set.measurements.empty()) return "";
  std::vector<TableLine> lines{{"benchmark", "parameters", "median", "rate", "spread", "note"}};
  for (const Measurement& m : set.measurements) lines.push_back(line_of(m));
  std::array<std::size_t, kColumns> widths{};
  for (const TableLine& line : lines)
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], count_characters(line[i]));
  std::string table;
  for (const TableLine& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < kColumns; ++i) {
      const std::string padding(widths[i] - count_characters(line[i]), ' ');
      const bool right = i >= 2 && i <= 4;
      text += (i > 0 ? "  " : "") + (right ? padding + line[i] : line[i] + padding);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    table += text + "\n";
  }
  return table;
}

}  // namespace memwall
