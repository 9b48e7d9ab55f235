// Comma-separated values in the form of RFC 4180: a cell that holds commas, quotation marks or line ends stands in
// quotation marks, those inside doubled. Lines end in LF or CRLF.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

// Reads a text record by record, and names the place of every complaint.
class CsvReader {
 public:
  // A byte order mark is skipped. `name`: of the file, for messages. REQUIRES: `text` outlives the reader.
  CsvReader(std::string_view text, std::string name, std::size_t first_line = 1);

  bool at_end() const { return rest_.empty(); }
  // Does what comes next begin so?
  bool begins_with(std::string_view start) const { return rest_.starts_with(start); }

  // Takes a line as it is, up to its end or that of the text.
  std::string_view plain_line();
  // Goes to the next record; false at the end of the text. Throws InputError where quotation marks make no sense.
  bool next();
  // Likewise, but passes over blank lines and, where it is given, lines that begin with `comment`.
  bool next_filled(std::string_view comment = {});

  // Of the record; valid until the next one is read.
  const std::vector<std::string_view>& cells() const { return cells_; }
  std::string_view operator[](std::size_t column) const { return cells_[column]; }
  // Where the record, or the line, that was taken last begins; from 1. 0 = none was.
  std::size_t line() const { return line_; }

  // Throws InputError "NAME:LINE: SENTENCE".
  [[noreturn]] void fail(const std::string& sentence) const;

 private:
  std::string_view cell();
  std::string_view quoted_cell();
  bool take_line_end();

  std::string_view rest_;
  std::string name_;
  std::vector<std::string_view> cells_;
  std::deque<std::string> unescaped_;  // cells with doubled quotation marks
  std::size_t line_ = 0, next_line_;
};

// Blanks and tabs at both ends taken off.
std::string_view without_blanks(std::string_view text);

// `text` as a cell: in quotation marks where it needs them, other control characters than line ends as `presentable`
// shows them.
std::string csv_cell(std::string_view text);

}  // namespace memwall
