#include "validate/replay/execution.h"

#include <algorithm>

#include "sim/text_hash.h"
#include "validate/measurement/text_file.h"
#include "validate/replay/schedule_lines.h"

namespace memwall {
namespace {

constexpr const char* kExecutionFirstLine = "memwall execution 1";
constexpr const char* kHeader = "op,host_start,host_end,start,end,alone";
constexpr std::int64_t kMostNanoseconds = 1'000'000'000'000'000;  // 11 days
constexpr std::int64_t kMostCount = std::int64_t{1} << 62;
constexpr std::int64_t kMostOps = 0xfffffffe;

std::int64_t nanoseconds_of(Duration d) { return (d.count() + 500) / 1000; }

std::string key_value(const std::string& key, const std::string& value) { return "# " + key + ": " + value + "\n"; }

// As percent_encoded, and without spaces and colons, which end it.
std::string key_encoded(const std::string& text) {
  std::string encoded;
  for (const char c : percent_encoded(text)) {
    if (c == ' ')
      encoded += "%20";
    else if (c == ':')
      encoded += "%3a";
    else
      encoded += c;
  }
  return encoded;
}

class ExecutionReader {
 public:
  ExecutionReader(const std::string& text, const std::string& name) : in_(text, name) {}

  Execution run() {
    if (!in_.next() || in_.line() != kExecutionFirstLine)
      in_.refuse(in_.line(), "\"" + std::string(kExecutionFirstLine) + "\"");
    std::int64_t ops = -1;
    while (in_.next() && in_.line() != kHeader) key(ops);
    if (in_.line() != kHeader) in_.refuse("the end of the file", "the line \"" + std::string(kHeader) + "\"");
    if (e_.totals.empty() || e_.chosen >= e_.totals.size())
      in_.refuse("pass " + std::to_string(e_.chosen),
                 "the number of one of " + std::to_string(e_.totals.size()) + " passes, counted from 0");
    while (in_.next()) row();
    if (static_cast<std::int64_t>(e_.times.size()) != ops)
      in_.refuse(std::to_string(e_.times.size()) + " rows", std::to_string(ops) + ", as \"# ops\" says");
    return std::move(e_);
  }

 private:
  void key(std::int64_t& ops) {
    const std::size_t colon = in_.line().find(": ");
    if (!in_.line().starts_with("# ") || colon == std::string_view::npos) in_.refuse(in_.line(), "\"# key: value\"");
    const std::string_view key = in_.line().substr(2, colon - 2), value = in_.line().substr(colon + 2);
    constexpr std::string_view kEnvironment = "environment.";
    if (key.starts_with(kEnvironment))
      e_.environment.emplace_back(in_.decoded(key.substr(kEnvironment.size())), in_.decoded(value));
    else if (key == "schedule")
      e_.schedule = in_.decoded(value);
    else if (key == "schedule_hash")
      e_.schedule_hash = in_.decoded(value);
    else if (key == "total")
      e_.totals.push_back(time(value));
    else if (key == "chosen")
      e_.chosen = static_cast<std::size_t>(in_.integer(value, 0, kMostCount));
    else if (key == "integrity")
      integrity(value);
    else if (key == "peak")
      peak(value);
    else if (key == "ops")
      ops = in_.integer(value, 0, kMostOps);
    else
      in_.refuse(key, "a key that executions have");
  }

  std::vector<std::string_view> words(std::string_view value, std::size_t count, const char* expected) const {
    std::vector<std::string_view> found;
    for (std::size_t from = 0; from <= value.size();) {
      const std::size_t end = std::min(value.find(' ', from), value.size());
      found.push_back(value.substr(from, end - from));
      from = end + 1;
    }
    if (found.size() != count) in_.refuse(value, expected);
    return found;
  }

  void integrity(std::string_view value) {
    const auto found = words(value, 2, "the number of checks and of bytes");
    e_.integrity.checks = static_cast<std::uint64_t>(in_.integer(found[0], 0, kMostCount));
    e_.integrity.bytes = static_cast<std::uint64_t>(in_.integer(found[1], 0, kMostCount));
  }

  void peak(std::string_view value) {
    const auto found = words(value, 3, "a place, bytes allocated and bytes reserved");
    e_.peaks.push_back(
        {in_.decoded(found[0]), in_.integer(found[1], 0, kMostCount), in_.integer(found[2], 0, kMostCount)});
  }

  Duration time(std::string_view field) const { return nanoseconds(in_.integer(field, 0, kMostNanoseconds)); }

  void row() {
    const auto& f = in_.fields(',', 6);
    const auto next = static_cast<std::int64_t>(e_.times.size());
    in_.integer(f[0], next, next);
    OpTimes times;
    times.host_start = time(f[1]);
    times.host_end = time(f[2]);
    if (times.host_end < times.host_start) in_.refuse(f[2], "an end that is not before the start");
    if (f[3].empty() != f[4].empty()) in_.refuse(in_.line(), "both a start and an end on the device, or neither");
    if (!f[3].empty()) {
      times.start = time(f[3]);
      times.end = time(f[4]);
      if (times.end < times.start) in_.refuse(f[4], "an end that is not before the start");
    }
    e_.times.push_back(times);
    e_.alone.push_back(time(f[5]));
  }

  LineReader in_;
  Execution e_;
};

}  // namespace

std::string execution_text(const Execution& e) {
  std::string text = std::string(kExecutionFirstLine) + "\n";
  text += key_value("schedule", percent_encoded(e.schedule));
  text += key_value("schedule_hash", percent_encoded(e.schedule_hash));
  for (const auto& [key, value] : e.environment)
    text += key_value("environment." + key_encoded(key), percent_encoded(value));
  for (const Duration total : e.totals) text += key_value("total", std::to_string(nanoseconds_of(total)));
  text += key_value("chosen", std::to_string(e.chosen));
  text += key_value("integrity", std::to_string(e.integrity.checks) + " " + std::to_string(e.integrity.bytes));
  for (const PlacePeak& p : e.peaks)
    text += key_value("peak",
                      percent_encoded(p.place) + " " + std::to_string(p.allocated) + " " + std::to_string(p.reserved));
  text += key_value("ops", std::to_string(e.times.size()));
  text += std::string(kHeader) + "\n";
  for (std::size_t i = 0; i < e.times.size(); ++i) {
    const OpTimes& t = e.times[i];
    text += std::to_string(i) + "," + std::to_string(nanoseconds_of(t.host_start)) + "," +
            std::to_string(nanoseconds_of(t.host_end)) + ",";
    if (t.start != kNever) text += std::to_string(nanoseconds_of(t.start)) + ",";
    if (t.start != kNever) text += std::to_string(nanoseconds_of(t.end)) + ",";
    if (t.start == kNever) text += ",,";
    text += std::to_string(nanoseconds_of(e.alone[i])) + "\n";
  }
  return text;
}

Execution parse_execution(const std::string& text, const std::string& name) {
  Execution execution = ExecutionReader(text, name).run();
  require_canonical(text, execution_text(execution), name);
  return execution;
}

void write_execution(const Execution& execution, const std::filesystem::path& path) {
  write_text_file(path, execution_text(execution));
}

Execution read_execution(const std::filesystem::path& path) {
  return parse_execution(read_text_file(path, kLargestSchedule), path.string());
}

std::string schedule_hash(const std::string& schedule_text) {
  const std::uint64_t hash = hash_of(schedule_text);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "fnv1a64:";
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[hash >> shift & 15];
  return text;
}

}  // namespace memwall
