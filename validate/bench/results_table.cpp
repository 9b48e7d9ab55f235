#include "validate/bench/results_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

namespace memwall {
namespace {

struct Scale {
  double factor;
  const char* unit;
};

std::string printed(double value, const char* unit) {
  char text[64];
  const double size = std::abs(value);
  const int decimals = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f%s", decimals, value, unit);
  return text;
}

// In the largest unit that leaves at least 1; in the smallest one otherwise. REQUIRES: descending.
template <std::size_t N>
std::string scaled(double value, const std::array<Scale, N>& scales) {
  for (const Scale& scale : scales)
    if (value >= scale.factor) return printed(value / scale.factor, scale.unit);
  return printed(value / scales.back().factor, scales.back().unit);
}

std::string rate_text(const Measurement& m) {
  static constexpr std::array kFlops{Scale{1e12, " TFLOP/s"}, Scale{1e9, " GFLOP/s"}};
  static constexpr std::array kBytes{Scale{1e12, " TB/s"}, Scale{1e9, " GB/s"}, Scale{1e6, " MB/s"}};
  std::string text;
  if (m.bytes_per_second() > 0) text = scaled(m.bytes_per_second(), kBytes);
  if (m.flops_per_second() > 0) text += (text.empty() ? "" : ", ") + scaled(m.flops_per_second(), kFlops);
  return text;
}

std::string spread_text(const Measurement& m) {
  return m.median > 0 ? printed(100 * (m.high - m.low) / m.median, " %") : "";
}

std::string size_text(const std::string& text) {
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size() || bytes == 0) return text;
  static constexpr std::array kUnits{"", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes % 1024 == 0 && unit + 1 < kUnits.size(); bytes /= 1024) ++unit;
  return std::to_string(bytes) + kUnits[unit];
}

// Characters, not bytes: notes may hold any UTF-8.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
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
  static constexpr std::array kSeconds{Scale{1, " s"}, Scale{1e-3, " ms"}, Scale{1e-6, " us"}, Scale{1e-9, " ns"}};
  static constexpr std::array kBytes{Scale{0x1p30, " GiB"}, Scale{0x1p20, " MiB"}, Scale{0x1p10, " KiB"},
                                     Scale{1, " B"}};
  if (unit == "s") return scaled(value, kSeconds);
  if (unit == "B") return scaled(value, kBytes);
  if (unit == "share") return printed(100 * value, " %");
  return value == std::floor(value) && value < 1e15 ? std::to_string(static_cast<long long>(value))
                                                    : printed(value, "");
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
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  std::string table;
  for (const TableLine& line : lines) {
    std::string text;
    for (std::size_t i = 0; i < kColumns; ++i) {
      const std::string padding(widths[i] - width_of(line[i]), ' ');
      const bool right = i >= 2 && i <= 4;
      text += (i > 0 ? "  " : "") + (right ? padding + line[i] : line[i] + padding);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    table += text + "\n";
  }
  return table;
}

}  // namespace memwall
