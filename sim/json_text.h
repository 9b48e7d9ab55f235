// JSON, written in order. Deterministic: same calls, same bytes.
//
// Doubles take the shortest form that reads back to the same value; infinities and
// NaN, which JSON lacks, become null. Text that is not UTF-8 is written with its
// stray bytes replaced by U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/duration_sum.h"
#include "sim/units.h"

namespace memwall {

class JsonText {
 public:
  enum class Layout : std::uint8_t { indented, line };  // line: all on one, as NDJSON needs it
  explicit JsonText(Layout layout = Layout::indented) : layout_(layout) {}

  JsonText& begin_object() { return open('{'); }
  JsonText& end_object() { return close('}'); }
  JsonText& begin_array() { return open('['); }
  JsonText& end_array() { return close(']'); }
  JsonText& key(std::string_view name);

  JsonText& value(std::string_view text);
  JsonText& value(const char* text) { return value(std::string_view(text)); }
  JsonText& value(double number);
  JsonText& value(bool truth);
  JsonText& value(std::int64_t number);
  JsonText& value(std::uint64_t number);
  JsonText& value(int number) { return value(static_cast<std::int64_t>(number)); }
  JsonText& value(std::uint32_t number) { return value(static_cast<std::uint64_t>(number)); }
  JsonText& null();

  template <class T>
  JsonText& field(std::string_view name, const T& v) {
    return key(name).value(v);
  }
  // In seconds: the double nearest to the exact number of picoseconds.
  JsonText& seconds(std::string_view name, Duration d) { return field(name, static_cast<double>(d.count()) / 1e12); }
  JsonText& seconds(std::string_view name, const DurationSum& sum) {
    const auto short_enough = sum.duration();
    return short_enough ? seconds(name, *short_enough) : field(name, sum.seconds());
  }

  // The whole text, ended by a newline. REQUIRES: everything opened is closed.
  std::string finish();

 private:
  JsonText& open(char bracket);
  JsonText& close(char bracket);
  void separate();

  void new_line();

  Layout layout_;
  std::string out_;
  std::vector<bool> has_items_;  // per open bracket
  bool after_key_ = false;
};

// `text` with quotes, escaped as JSON demands.
std::string json_quoted(std::string_view text);

}  // namespace memwall
