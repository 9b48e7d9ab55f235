#include "validate/measurement/results_file.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "sim/csv.h"
#include "sim/error.h"
#include "sim/json_text.h"
#include "sim/number_text.h"
#include "validate/measurement/text_file.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFirstLine = "# memwall results ";
constexpr int kVersion = 1;
constexpr std::string_view kHeader = "benchmark,parameters,unit,median,low,high,samples,bytes,flops,status,note";
constexpr std::size_t kFields = 11;
constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 30;
constexpr std::string_view kUnits[] = {"s", "B", "count", "share"};

// An entry of the environment is one line, whatever a driver called itself.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

std::string joined(const std::map<std::string, std::string>& parameters) {
  std::string text;
  for (const auto& [key, value] : parameters) {
    assert(!key.empty() && key.find_first_of("=;") == std::string::npos && value.find(';') == std::string::npos);
    text += (text.empty() ? "" : ";") + key + "=" + value;
  }
  return text;
}

[[noreturn]] void refuse(const CsvReader& csv, const std::string& found, const std::string& expected) {
  csv.fail("found " + found + ", expected " + expected + ".");
}

// For a message, whatever bytes the field holds.
std::string shown(const std::string& field) {
  std::string text = field.size() > 60 ? field.substr(0, 57) + "..." : field;
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return "\"" + text + "\"";
}

void read_first_line(CsvReader& csv) {
  const std::string first(csv.plain_line());
  if (!first.starts_with(kFirstLine)) refuse(csv, shown(first), "\"# memwall results 1\": results of memwall-bench");
  const std::string version = first.substr(kFirstLine.size());
  int number = 0;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
  if (error != std::errc() || end != version.data() + version.size() || number < 1)
    refuse(csv, "version " + shown(version), "a number");
  if (number > kVersion)
    refuse(csv, "version " + version, "at most " + std::to_string(kVersion) + ": a newer memwall wrote this");
}

Environment read_environment(CsvReader& csv) {
  Environment environment;
  while (csv.begins_with("#")) {
    const std::string line(csv.plain_line());
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("# ") || colon == std::string::npos || colon == 2)
      refuse(csv, shown(line), "\"# key: value\"");
    environment.emplace_back(line.substr(2, colon - 2), line.substr(colon + 2));
  }
  return environment;
}

std::map<std::string, std::string> read_parameters(const CsvReader& csv, const std::string& field) {
  std::map<std::string, std::string> parameters;
  for (std::size_t at = 0; at < field.size();) {
    const std::size_t end = std::min(field.find(';', at), field.size());
    const std::string item = field.substr(at, end - at);
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0 || end + 1 == field.size())
      refuse(csv, "parameters " + shown(field), "key=value;key=value");
    const std::string key = item.substr(0, equals);
    if (!parameters.empty() && key <= parameters.rbegin()->first)
      refuse(csv, "parameters " + shown(field), "each key once, in ascending order");
    parameters.emplace(key, item.substr(equals + 1));
    at = end + 1;
  }
  return parameters;
}

template <class Number>
Number read_figure(const CsvReader& csv, const char* column, const std::string& field) {
  Number value{};
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  bool good = error == std::errc() && end == field.data() + field.size() && value >= Number{};
  if constexpr (std::is_floating_point_v<Number>) good = good && std::isfinite(value);
  if (!good) refuse(csv, std::string(column) + " " + shown(field), "a finite number that is not negative");
  return value;
}

MeasurementStatus read_status(const CsvReader& csv, const std::string& field) {
  for (const MeasurementStatus status :
       {MeasurementStatus::measured, MeasurementStatus::not_applicable, MeasurementStatus::failed})
    if (field == to_string(status)) return status;
  refuse(csv, "status " + shown(field), "measured, not_applicable or failed");
}

Measurement read_measurement(const CsvReader& csv) {
  const std::vector<std::string> fields(csv.cells().begin(), csv.cells().end());
  if (fields.size() != kFields)
    refuse(csv, std::to_string(fields.size()) + " fields", std::to_string(kFields) + ": " + std::string(kHeader));
  Measurement m;
  m.benchmark = fields[0];
  if (m.benchmark.empty() ||
      m.benchmark.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    refuse(csv, "benchmark " + shown(m.benchmark), "a name of small letters, digits and _");
  m.parameters = read_parameters(csv, fields[1]);
  m.unit = fields[2];
  if (std::find(std::begin(kUnits), std::end(kUnits), m.unit) == std::end(kUnits))
    refuse(csv, "unit " + shown(m.unit), "s, B, count or share");
  m.median = read_figure<double>(csv, "median", fields[3]);
  m.low = read_figure<double>(csv, "low", fields[4]);
  m.high = read_figure<double>(csv, "high", fields[5]);
  m.samples = read_figure<std::uint32_t>(csv, "samples", fields[6]);
  m.bytes = read_figure<double>(csv, "bytes", fields[7]);
  m.flops = read_figure<double>(csv, "flops", fields[8]);
  m.status = read_status(csv, fields[9]);
  m.note = fields[10];
  if (m.low > m.median || m.median > m.high)
    refuse(csv, "low " + fields[4] + ", median " + fields[3] + ", high " + fields[5], "low <= median <= high");
  return m;
}

}  // namespace

std::string results_csv(const MeasurementSet& set) {
  std::string text = std::string(kFirstLine) + std::to_string(kVersion) + "\n";
  for (const auto& [key, value] : set.environment) text += "# " + one_line(key) + ": " + one_line(value) + "\n";
  text += std::string(kHeader) + "\n";
  for (const Measurement& m : set.measurements)
    text += csv_cell(m.benchmark) + "," + csv_cell(joined(m.parameters)) + "," + csv_cell(m.unit) + "," +
            shortest_text(m.median) + "," + shortest_text(m.low) + "," + shortest_text(m.high) + "," +
            std::to_string(m.samples) + "," + shortest_text(m.bytes) + "," + shortest_text(m.flops) + "," +
            to_string(m.status) + "," + csv_cell(m.note) + "\n";
  return text;
}

std::string results_json(const MeasurementSet& set) {
  JsonText json;
  const auto object = [&](std::string_view name, const auto& pairs) {
    json.key(name).begin_object();
    for (const auto& [key, value] : pairs) json.field(key, value);
    json.end_object();
  };
  json.begin_object().field("memwall_results", kVersion);
  object("environment", set.environment);
  json.key("measurements").begin_array();
  for (const Measurement& m : set.measurements) {
    json.begin_object().field("benchmark", m.benchmark);
    object("parameters", m.parameters);
    json.field("unit", m.unit).field("median", m.median).field("low", m.low).field("high", m.high);
    json.field("samples", m.samples).field("bytes", m.bytes).field("flops", m.flops);
    json.field("status", to_string(m.status)).field("note", m.note).end_object();
  }
  return json.end_array().end_object().finish();
}

MeasurementSet parse_results(const std::string& text, const std::string& name) {
  CsvReader csv(text, name);
  if (!text.ends_with('\n')) {
    CsvReader end({}, name, 1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')));
    end.plain_line();
    refuse(end, "a last line that is cut off", "it to end with a new line");
  }
  read_first_line(csv);
  MeasurementSet set;
  set.environment = read_environment(csv);
  const std::string header(csv.plain_line());
  if (header != kHeader) refuse(csv, shown(header), "the header \"" + std::string(kHeader) + "\"");
  while (csv.next()) {
    if (set.measurements.size() == kMostMeasurements)
      refuse(csv, "one more row", "at most " + std::to_string(kMostMeasurements));
    set.measurements.push_back(read_measurement(csv));
  }
  return set;
}

void write_results(const MeasurementSet& set, const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder))
    throw UsageError(folder.string() + ": the folder cannot be made (" +
                     (error ? error.message() : "something else has this name") + ").");
  write_text_file(folder / "results.csv", results_csv(set));
  write_text_file(folder / "results.json", results_json(set));
}

MeasurementSet read_results(const fs::path& path) {
  std::error_code ignored;
  const fs::path file = fs::is_directory(path, ignored) ? path / "results.csv" : path;
  return parse_results(read_text_file(file, kLargestFile), file.string());
}

}  // namespace memwall
