#include "validate/replay/schedule_lines.h"

#include <charconv>
#include <cmath>

#include "sim/error.h"
#include "sim/number_text.h"
#include "sim/presentable.h"

namespace memwall {
namespace {

constexpr std::size_t kLongestExcerpt = 80;

bool is_plain(unsigned char c) { return c >= 0x20 && c != 0x7f && c != '%'; }

int hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string excerpt(std::string_view text) {
  std::string safe;
  for (const char c : text.substr(0, kLongestExcerpt)) safe += is_plain(static_cast<unsigned char>(c)) ? c : '?';
  return text.size() > kLongestExcerpt ? safe + "..." : safe;
}

std::string percent_encoded(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  if (text.empty()) return "-";
  if (text == "-") return "%2d";
  // Text beyond ASCII stays readable, unless a terminal would obey a part of it.
  const bool harmless = presentable_line(text) == text;
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(byte) && (byte < 0x80 || harmless))
      encoded += c;
    else
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return encoded;
}

bool LineReader::next() {
  if (at_ == text_.size()) return false;
  ++number_;
  const std::size_t end = text_.find('\n', at_);
  line_ = std::string_view(text_).substr(at_, end == std::string::npos ? end : end - at_);
  if (end == std::string::npos) refuse(line_, "a newline at the end of the line: the file was cut off");
  at_ = end + 1;
  return true;
}

const std::vector<std::string_view>& LineReader::fields(char separator, std::size_t count) {
  fields_.clear();
  for (std::size_t from = 0;;) {
    const std::size_t end = line_.find(separator, from);
    fields_.push_back(line_.substr(from, end == std::string_view::npos ? end : end - from));
    if (end == std::string_view::npos || fields_.size() > count) break;
    from = end + 1;
  }
  if (fields_.size() != count)
    refuse(line_, std::to_string(count) + " fields between " + (separator == '\t' ? "tabs" : "commas"));
  return fields_;
}

std::int64_t LineReader::integer(std::string_view field, std::int64_t lowest, std::int64_t highest) const {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || value < lowest || value > highest)
    refuse(field, "a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest));
  return value;
}

double LineReader::number(std::string_view field, double lowest) const {
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || !std::isfinite(value) || value < lowest)
    refuse(field, "a number of at least " + shortest_text(lowest));
  return value;
}

std::string LineReader::decoded(std::string_view field) const {
  if (field == "-") return "";
  if (field.empty()) refuse(field, "a word, or \"-\" for none");
  std::string text;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] != '%') {
      text += field[i];
      continue;
    }
    const int high = i + 2 < field.size() ? hexadecimal(field[i + 1]) : -1;
    const int low = i + 2 < field.size() ? hexadecimal(field[i + 2]) : -1;
    if (high < 0 || low < 0) refuse(field, "two hexadecimal digits after each \"%\"");
    text += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return text;
}

void LineReader::refuse(std::string_view found, const std::string& expected) const {
  throw InputError(name_ + ":" + std::to_string(number_) + ": found \"" + excerpt(found) + "\", expected " + expected +
                   ".");
}

void require_canonical(const std::string& text, const std::string& canonical, const std::string& name) {
  if (text == canonical) return;
  LineReader found(text, name), expected(canonical, name);
  while (found.next()) {
    if (!expected.next()) found.refuse(found.line(), "the end of the file");
    if (found.line() != expected.line()) found.refuse(found.line(), "\"" + excerpt(expected.line()) + "\"");
  }
  found.refuse("the end of the file", "more lines");
}

}  // namespace memwall
