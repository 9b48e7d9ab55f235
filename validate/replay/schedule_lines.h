// Lines of text as schedules and executions are written: fields between separators, words without control
// characters, messages that name file and line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

// Control characters, "%" and DEL as %XX (lower case); "" as "-", and "-" as "%2d". Never contains a tab or newline.
std::string percent_encoded(std::string_view text);

// Of what a message quotes: no control characters, and not all of a long text.
std::string excerpt(std::string_view text);

// Reads a text line by line. Every member function that finds something wrong throws InputError.
class LineReader {
 public:
  // `text` and `name` must outlive it; `name` is for messages.
  LineReader(const std::string& text, const std::string& name) : text_(text), name_(name) {}

  // Goes to the next line; false after the last one. A last line without a newline is refused: it was cut off.
  bool next();
  std::string_view line() const { return line_; }
  // The line's fields; there must be `count` of them. `separator` is tab or comma.
  const std::vector<std::string_view>& fields(char separator, std::size_t count);

  // A whole number in plain decimal.
  std::int64_t integer(std::string_view field, std::int64_t lowest, std::int64_t highest) const;
  double number(std::string_view field, double lowest) const;
  std::string decoded(std::string_view field) const;
  // "FILE:LINE: found "…", expected EXPECTED."
  [[noreturn]] void refuse(std::string_view found, const std::string& expected) const;

 private:
  const std::string& text_;
  const std::string& name_;
  std::string_view line_;
  std::size_t at_ = 0, number_ = 0;
  std::vector<std::string_view> fields_;
};

// Throws InputError at the first line where `text` differs from `canonical`, which is how the same content is written.
void require_canonical(const std::string& text, const std::string& canonical, const std::string& name);

// No longer text is read.
inline constexpr std::uint64_t kLargestSchedule = std::uint64_t{1} << 32;

}  // namespace memwall
