#include "validate/calibrate/measured_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/byte_units.h"
#include "sim/error.h"
#include "sim/quantile.h"

namespace memwall {
namespace {

constexpr int kDigits = 4;

constexpr double kLargestSize = 0x1p60;

double checked_size(const Measurement& row, double bytes) {
  if (std::isfinite(bytes) && bytes >= 1 && bytes <= kLargestSize) return bytes;
  throw InputError(fmt::format("{}: it moves {} bytes; expected a size from 1 to 2^60.", row_name(row), bytes));
}

double parameter_size(const Measurement& row) { return row.number("bytes", row.number("working_set", 0)); }

void check_time(const Measurement& row, bool may_be_negative) {
  if (row.unit != "s")
    throw InputError(fmt::format("{}: its unit is \"{}\"; expected \"s\".", row_name(row), row.unit));
  const bool sound = std::isfinite(row.median) && std::abs(row.median) <= 1e6 && (may_be_negative || row.median > 0);
  if (!sound)
    throw InputError(fmt::format("{}: its median is {} s; expected a {}time of at most 1e6 s.", row_name(row),
                                 row.median, may_be_negative ? "" : "positive "));
}

[[noreturn]] void refuse_fall(const Measurement& smaller, const Measurement& larger) {
  throw InputError(
      fmt::format("{}: {} are less than the {} of {}, which is at most a quarter of the size; expected "
                  "times that grow with size.",
                  row_name(larger), time_text(larger.median), time_text(smaller.median), row_name(smaller)));
}

// `rows` ascending by size.
void require_growth(const std::vector<const Measurement*>& rows) {
  std::size_t next = 0;
  const Measurement* slowest = nullptr;  // among those of at most a quarter of the size
  for (const Measurement* row : rows) {
    for (; 4 * size_of(*rows[next]) <= size_of(*row); ++next)
      if (!slowest || rows[next]->median > slowest->median) slowest = rows[next];
    if (slowest && row->median < 0.8 * slowest->median && std::max(row->high, row->median) < slowest->low)
      refuse_fall(*slowest, *row);
  }
}

}  // namespace

std::string row_name(const Measurement& row) {
  std::string parameters;
  for (const auto& [key, value] : row.parameters)
    parameters += fmt::format("{}{}={}", parameters.empty() ? "" : ", ", key, value);
  return parameters.empty() ? row.benchmark : fmt::format("{} ({})", row.benchmark, parameters);
}

std::vector<Measurement> time_rows(const MeasurementSet& set, const std::string& benchmark, bool may_be_negative) {
  std::vector<Measurement> rows = set.of(benchmark);
  for (const Measurement& row : rows) check_time(row, may_be_negative);
  return rows;
}

double size_of(const Measurement& row) {
  const double parameter = parameter_size(row);
  return checked_size(row, parameter != 0 ? parameter : row.bytes);
}

double traffic_of(const Measurement& row) {
  return checked_size(row, row.bytes != 0 ? row.bytes : parameter_size(row));
}

std::vector<SizedTime> times_by_size(const std::vector<Measurement>& rows) {
  std::vector<const Measurement*> ascending;
  std::map<double, std::vector<double>> by_size;
  std::map<double, double> spread;
  for (const Measurement& row : rows) {
    ascending.push_back(&row);
    by_size[size_of(row)].push_back(row.median);
    double& widest = spread[size_of(row)];
    widest = std::max(widest, std::isfinite(row.high - row.low) ? (row.high - row.low) / (2 * row.median) : 0);
  }
  std::stable_sort(ascending.begin(), ascending.end(),
                   [](const Measurement* a, const Measurement* b) { return size_of(*a) < size_of(*b); });
  require_growth(ascending);
  std::vector<SizedTime> times;
  for (const auto& [bytes, medians] : by_size) times.push_back({bytes, median(medians), spread[bytes]});
  return times;
}

std::string sizes_sentence(const std::vector<Measurement>& rows) {
  std::vector<double> sizes;
  for (const Measurement& row : rows) sizes.push_back(size_of(row));
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.size() == 1) return fmt::format("{} of {}", rows.front().benchmark, size_text(sizes.front()));
  return fmt::format("{}, {} sizes from {} to {}", rows.front().benchmark, sizes.size(), size_text(sizes.front()),
                     size_text(sizes.back()));
}

std::string size_text(double bytes) { return exact_bytes_text(std::llround(bytes)); }
std::string rate_text(double rate) { return scaled_text(rate, kDecimalBytes, kDigits, TrailingZeros::dropped) + "/s"; }
std::string flops_text(double rate) {
  static constexpr std::array units{ScaledUnit{1, "FLOP/s"}, ScaledUnit{1e9, "GFLOP/s"}, ScaledUnit{1e12, "TFLOP/s"},
                                    ScaledUnit{1e15, "PFLOP/s"}};
  return scaled_text(rate, units, kDigits, TrailingZeros::dropped);
}
std::string time_text(double seconds) {
  return seconds == 0 ? "0 us" : scaled_text(seconds, kTimeUnits, kDigits, TrailingZeros::dropped);
}
std::string plain_text(double number) { return fmt::format("{:.4g}", number); }

}  // namespace memwall
