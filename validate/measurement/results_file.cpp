#include "validate/measurement/results_file.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "sim/error.h"
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

// The shortest digits that read back as the same number.
std::string figure(double value) {
  assert(std::isfinite(value));
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

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

// ---- Reading

// Records of a text in the form of RFC 4180, and where they begin.
class CsvRecords {
 public:
  CsvRecords(const std::string& text, const std::string& name) : text_(text), name_(name) {}

  bool at_end() const { return at_ == text_.size(); }
  std::size_t line() const { return line_; }
  [[noreturn]] void refuse(const std::string& found, const std::string& expected) const {
    throw InputError(name_ + ":" + std::to_string(line_) + ": found " + found + ", expected " + expected + ".");
  }

  // The next line, unquoted.
  std::string plain_line() {
    const std::size_t end = text_.find('\n', at_);
    if (end == std::string::npos) refuse("a last line that is cut off", "it to end with a new line");
    std::string found = text_.substr(at_, end - at_);
    if (!found.empty() && found.back() == '\r') found.pop_back();
    at_ = end + 1;
    return found;
  }
  void next_line() { ++line_; }
  bool begins_with(std::string_view start) const { return std::string_view(text_).substr(at_).starts_with(start); }

  // The fields of the next record. `line()` stays at its first line until `next_line`.
  std::vector<std::string> record() {
    lines_inside_ = 0;
    std::vector<std::string> fields{""};
    while (!field(fields.back())) {
      fields.emplace_back();
      if (fields.size() > kFields) refuse("more than " + std::to_string(kFields) + " fields", "the header's fields");
    }
    return fields;
  }
  void next_record() { line_ += 1 + lines_inside_; }

 private:
  // Reads one field and what ends it; true if that was the end of the line.
  bool field(std::string& value) {
    if (at_ < text_.size() && text_[at_] == '"') {
      quoted_field(value);
    } else {
      const std::size_t end = std::min(text_.find_first_of(",\"\r\n", at_), text_.size());
      value = text_.substr(at_, end - at_);
      at_ = end;
    }
    if (at_ == text_.size()) refuse("a last line that is cut off", "it to end with a new line");
    if (text_[at_] == ',') return ++at_, false;
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
    if (text_[at_] == '\n') return ++at_, true;
    refuse("a quotation mark or a carriage return amid a field",
           "the whole field in quotation marks, and those inside doubled");
  }

  void quoted_field(std::string& value) {
    for (++at_;; ++at_) {
      const std::size_t end = text_.find('"', at_);
      if (end == std::string::npos) refuse("a quotation mark that is never closed", "one more");
      value.append(text_, at_, end - at_);
      at_ = end + 1;
      if (at_ == text_.size() || text_[at_] != '"') break;
      value += '"';
    }
    lines_inside_ += static_cast<std::size_t>(std::count(value.begin(), value.end(), '\n'));
  }

  const std::string& text_;
  const std::string& name_;
  std::size_t at_ = 0, line_ = 1, lines_inside_ = 0;
};

// For a message, whatever bytes the field holds.
std::string shown(const std::string& field) {
  std::string text = field.size() > 60 ? field.substr(0, 57) + "..." : field;
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return "\"" + text + "\"";
}

void read_first_line(CsvRecords& csv) {
  const std::string first = csv.plain_line();
  if (!first.starts_with(kFirstLine)) csv.refuse(shown(first), "\"# memwall results 1\": results of memwall-bench");
  const std::string version = first.substr(kFirstLine.size());
  int number = 0;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
  if (error != std::errc() || end != version.data() + version.size() || number < 1)
    csv.refuse("version " + shown(version), "a number");
  if (number > kVersion)
    csv.refuse("version " + version, "at most " + std::to_string(kVersion) + ": a newer memwall wrote this");
  csv.next_line();
}

Environment read_environment(CsvRecords& csv) {
  Environment environment;
  for (; csv.begins_with("#"); csv.next_line()) {
    const std::string line = csv.plain_line();
    const std::size_t colon = line.find(": ");
    if (!line.starts_with("# ") || colon == std::string::npos || colon == 2)
      csv.refuse(shown(line), "\"# key: value\"");
    environment.emplace_back(line.substr(2, colon - 2), line.substr(colon + 2));
  }
  return environment;
}

std::map<std::string, std::string> read_parameters(const CsvRecords& csv, const std::string& field) {
  std::map<std::string, std::string> parameters;
  for (std::size_t at = 0; at < field.size();) {
    const std::size_t end = std::min(field.find(';', at), field.size());
    const std::string item = field.substr(at, end - at);
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0 || end + 1 == field.size())
      csv.refuse("parameters " + shown(field), "key=value;key=value");
    const std::string key = item.substr(0, equals);
    if (!parameters.empty() && key <= parameters.rbegin()->first)
      csv.refuse("parameters " + shown(field), "each key once, in ascending order");
    parameters.emplace(key, item.substr(equals + 1));
    at = end + 1;
  }
  return parameters;
}

template <class Number>
Number read_figure(const CsvRecords& csv, const char* column, const std::string& field) {
  Number value{};
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  bool good = error == std::errc() && end == field.data() + field.size() && value >= Number{};
  if constexpr (std::is_floating_point_v<Number>) good = good && std::isfinite(value);
  if (!good) csv.refuse(std::string(column) + " " + shown(field), "a finite number that is not negative");
  return value;
}

MeasurementStatus read_status(const CsvRecords& csv, const std::string& field) {
  for (const MeasurementStatus status :
       {MeasurementStatus::measured, MeasurementStatus::not_applicable, MeasurementStatus::failed})
    if (field == to_string(status)) return status;
  csv.refuse("status " + shown(field), "measured, not_applicable or failed");
}

Measurement read_measurement(const CsvRecords& csv, const std::vector<std::string>& fields) {
  if (fields.size() != kFields)
    csv.refuse(std::to_string(fields.size()) + " fields", std::to_string(kFields) + ": " + std::string(kHeader));
  Measurement m;
  m.benchmark = fields[0];
  if (m.benchmark.empty() ||
      m.benchmark.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    csv.refuse("benchmark " + shown(m.benchmark), "a name of small letters, digits and _");
  m.parameters = read_parameters(csv, fields[1]);
  m.unit = fields[2];
  if (std::find(std::begin(kUnits), std::end(kUnits), m.unit) == std::end(kUnits))
    csv.refuse("unit " + shown(m.unit), "s, B, count or share");
  m.median = read_figure<double>(csv, "median", fields[3]);
  m.low = read_figure<double>(csv, "low", fields[4]);
  m.high = read_figure<double>(csv, "high", fields[5]);
  m.samples = read_figure<std::uint32_t>(csv, "samples", fields[6]);
  m.bytes = read_figure<double>(csv, "bytes", fields[7]);
  m.flops = read_figure<double>(csv, "flops", fields[8]);
  m.status = read_status(csv, fields[9]);
  m.note = fields[10];
  if (m.low > m.median || m.median > m.high)
    csv.refuse("low " + fields[4] + ", median " + fields[3] + ", high " + fields[5], "low <= median <= high");
  return m;
}

// ---- JSON

// Length of the well-formed UTF-8 sequence at the beginning of `text`; 0 if there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, halves of surrogate pairs, beyond U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) || (first == 0xf0 && byte(1) < 0x90) ||
      (first == 0xf4 && byte(1) > 0x8f))
    return 0;
  return length;
}

std::string json_string(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string json = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const unsigned char c = static_cast<unsigned char>(text.front());
    if (length == 0) {
      json += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      json += {'\\', static_cast<char>(c)};
    } else if (c < 0x20) {
      json += {'\\', 'u', '0', '0', kDigits[c >> 4], kDigits[c & 15]};
    } else {
      json += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return json + "\"";
}

template <class Pairs>
std::string json_object(const Pairs& pairs) {
  std::string json;
  for (const auto& [key, value] : pairs)
    json += (json.empty() ? "" : ", ") + json_string(key) + ": " + json_string(value);
  return "{" + json + "}";
}

}  // namespace

std::string results_csv(const MeasurementSet& set) {
  std::string text = std::string(kFirstLine) + std::to_string(kVersion) + "\n";
  for (const auto& [key, value] : set.environment) text += "# " + one_line(key) + ": " + one_line(value) + "\n";
  text += std::string(kHeader) + "\n";
  for (const Measurement& m : set.measurements)
    text += quoted(m.benchmark) + "," + quoted(joined(m.parameters)) + "," + quoted(m.unit) + "," + figure(m.median) +
            "," + figure(m.low) + "," + figure(m.high) + "," + std::to_string(m.samples) + "," + figure(m.bytes) + "," +
            figure(m.flops) + "," + to_string(m.status) + "," + quoted(m.note) + "\n";
  return text;
}

std::string results_json(const MeasurementSet& set) {
  std::string text = "{\n\"memwall_results\": " + std::to_string(kVersion) +
                     ",\n\"environment\": " + json_object(set.environment) + ",\n\"measurements\": [";
  const char* separator = "\n";
  for (const Measurement& m : set.measurements) {
    text += separator + ("{\"benchmark\": " + json_string(m.benchmark)) +
            ", \"parameters\": " + json_object(m.parameters) + ", \"unit\": " + json_string(m.unit) +
            ", \"median\": " + figure(m.median) + ", \"low\": " + figure(m.low) + ", \"high\": " + figure(m.high) +
            ", \"samples\": " + std::to_string(m.samples) + ", \"bytes\": " + figure(m.bytes) +
            ", \"flops\": " + figure(m.flops) + ", \"status\": " + json_string(to_string(m.status)) +
            ", \"note\": " + json_string(m.note) + "}";
    separator = ",\n";
  }
  return text + "\n]\n}\n";
}

MeasurementSet parse_results(const std::string& text, const std::string& name) {
  CsvRecords csv(text, name);
  read_first_line(csv);
  MeasurementSet set;
  set.environment = read_environment(csv);
  const std::string header = csv.at_end() ? "" : csv.plain_line();
  if (header != kHeader) csv.refuse(shown(header), "the header \"" + std::string(kHeader) + "\"");
  csv.next_line();
  for (; !csv.at_end(); csv.next_record()) {
    const std::vector<std::string> fields = csv.record();
    if (set.measurements.size() == kMostMeasurements)
      csv.refuse("one more row", "at most " + std::to_string(kMostMeasurements));
    set.measurements.push_back(read_measurement(csv, fields));
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
