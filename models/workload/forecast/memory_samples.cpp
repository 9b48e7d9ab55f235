#include "models/workload/forecast/memory_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>

#include "models/workload/import/bytes/file_text.h"
#include "models/workload/import/bytes/quote_for_message.h"
#include "sim/csv.h"
#include "sim/error.h"
#include "sim/quantile.h"

namespace memwall {
namespace {

constexpr std::size_t kLargestLog = std::size_t{1} << 30;
constexpr double kMostBytes = 0x1p60;
constexpr double kMostSeconds = 1e12;  // later than any log
constexpr std::size_t kMostSamples = 1 << 24;

// Takes a number off the front.
template <class Number>
bool take(std::string_view& text, Number& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) return false;
  text.remove_prefix(1);
  return true;
}

// "2026/11/21 10:00:00.123" in seconds since 1970, of a clock without daylight saving.
std::optional<double> seconds_of_date(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  const bool read = take(text, year) && take(text, '/') && take(text, month) && take(text, '/') && take(text, day) &&
                    take(text, ' ') && take(text, hour) && take(text, ':') && take(text, minute) && take(text, ':') &&
                    take(text, second) && text.empty();
  if (!read || month < 0 || day < 0) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok() || year < 1970 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || !(second >= 0 && second < 61))
    return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86400 + hour * 3600 + minute * 60 + second;
}

}  // namespace

MemorySampleReader::MemorySampleReader(std::string file) : file_(std::move(file)) {}

void MemorySampleReader::fail(const std::string& sentence) const {
  throw InputError(fmt::format("{}:{}: {}", file_, line_, sentence));
}

void MemorySampleReader::read_header(const std::vector<std::string_view>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string_view name = cells[i];
    if (time_column_ == kNone && (name == "timestamp" || name == "seconds")) {
      time_column_ = i;
      dates_ = name == "timestamp";
    } else if (memory_column_ == kNone && (name == "bytes" || name.starts_with("memory.used"))) {
      in_bytes_ = name == "bytes";
      if (!in_bytes_ && name != "memory.used [MiB]")
        fail(fmt::format("the column {} has an unknown unit; expected \"memory.used [MiB]\" or \"bytes\".",
                         quote_for_message(name)));
      memory_column_ = i;
    } else if (name == "index") {
      index_column_ = i;
    }
  }
  if (time_column_ != kNone && memory_column_ != kNone) return;
  memory_column_ = kNone;
  fail(
      fmt::format("the first line names no column for {}; expected \"timestamp, memory.used [MiB]\" (as nvidia-smi "
                  "--query-gpu=timestamp,memory.used --format=csv writes it) or \"seconds,bytes\", found {}.",
                  time_column_ == kNone ? "the time" : "the used memory",
                  quote_for_message(cells.empty() ? std::string_view() : cells.front())));
}

double MemorySampleReader::time_of(std::string_view cell) const {
  if (dates_) {
    const std::optional<double> seconds = seconds_of_date(cell);
    if (!seconds)
      fail(fmt::format("{} is no time; expected a date such as 2026/11/21 10:00:00.123.", quote_for_message(cell)));
    return *seconds;
  }
  double seconds = 0;
  std::string_view rest = cell;
  if (!take(rest, seconds) || !rest.empty() || !(std::abs(seconds) <= kMostSeconds))
    fail(fmt::format("{} is no time; expected a number of seconds.", quote_for_message(cell)));
  return seconds;
}

Bytes MemorySampleReader::used_of(std::string_view cell) const {
  double value = 0;
  std::string_view rest = cell;
  const bool number = take(rest, value);
  if (!in_bytes_) {
    value *= static_cast<double>(MiB(1));
    if (rest == " MiB") rest = {};
  }
  if (!number || !rest.empty() || !(value >= 0 && value <= kMostBytes))
    fail(fmt::format("{} is no amount of memory; expected {} from 0 to 2^60 bytes.", quote_for_message(cell),
                     in_bytes_ ? "a number of bytes" : "a number of MiB"));
  return static_cast<Bytes>(std::llround(value));
}

std::optional<MemorySample> MemorySampleReader::read(std::string_view line) {
  ++line_;
  CsvReader reader(line, file_, line_);
  if (!reader.next_filled()) return std::nullopt;
  std::vector<std::string_view> cells = reader.cells();
  for (std::string_view& cell : cells) cell = without_blanks(cell);
  if (!has_header()) {
    read_header(cells);
    return std::nullopt;
  }
  const std::size_t needed = std::max(time_column_, memory_column_);
  if (cells.size() <= needed || (index_column_ != kNone && cells.size() <= index_column_))
    fail(fmt::format("the row has {} columns; the first line promises more.", cells.size()));
  if (index_column_ != kNone) {
    if (gpu_.empty()) gpu_ = cells[index_column_];
    if (cells[index_column_] != gpu_) {
      ++skipped_;
      return std::nullopt;
    }
  }
  const MemorySample sample{time_of(cells[time_column_]), used_of(cells[memory_column_])};
  if (last_time_ && sample.seconds < *last_time_)
    fail(fmt::format("time goes back by {} s; expected rows in the order of time.", *last_time_ - sample.seconds));
  last_time_ = sample.seconds;
  return sample;
}

MemorySamples read_memory_samples(const std::filesystem::path& path) {
  const std::string text = read_file_text(path, kLargestLog);
  MemorySampleReader reader(path.string());
  MemorySamples result;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (const auto sample = reader.read(rest.substr(0, end))) result.samples.push_back(*sample);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (result.samples.empty())
    throw InputError(
        fmt::format("{}: there is no sample; expected a line of column names and rows below.", path.string()));
  if (reader.skipped() > 0)
    result.notes.push_back(
        fmt::format("Rows of GPU {} alone; {} of other GPUs are left out.", reader.gpu(), reader.skipped()));
  return result;
}

MemorySeries series_of_samples(const std::vector<MemorySample>& samples, std::vector<std::string>& notes) {
  MemorySeries series;
  std::vector<double> distances;
  for (std::size_t i = 1; i < samples.size(); ++i) distances.push_back(samples[i].seconds - samples[i - 1].seconds);
  double distance = 0;
  std::size_t off = 0;
  if (!distances.empty()) {
    distance = upper_median(distances);
    for (const double d : distances) off += std::abs(d - distance) > distance / 2;
  }
  series.seconds_per_sample = distance;
  const double length = samples.empty() ? 0 : samples.back().seconds - samples.front().seconds;
  const bool even = off == 0 || distance <= 0 || length / distance > static_cast<double>(kMostSamples);
  if (even) {
    for (const MemorySample& s : samples) series.bytes.push_back(static_cast<double>(s.used));
    return series;
  }
  std::size_t latest = 0;
  const auto count = static_cast<std::size_t>(std::floor(length / distance)) + 1;
  for (std::size_t i = 0; i < count; ++i) {
    // Half a distance of tolerance: a sample that is a little late counts for its place.
    const double until = samples.front().seconds + (static_cast<double>(i) + 0.5) * distance;
    while (latest + 1 < samples.size() && samples[latest + 1].seconds < until) ++latest;
    series.bytes.push_back(static_cast<double>(samples[latest].used));
  }
  notes.push_back(
      fmt::format("{} of {} distances between samples differ from {:.4g} s by more than half; the series was "
                  "sampled anew at that distance.",
                  off, distances.size(), distance));
  return series;
}

}  // namespace memwall
