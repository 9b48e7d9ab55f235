// Rows of a comma-separated table whose columns are known, with the place of every complaint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/csv.h"

namespace memwall {

class CsvRows {
 public:
  // Reads the header line. REQUIRES: `text` outlives the rows. Throws InputError, as all members
  // do, with file and line: here if a column is not the one expected at its place.
  CsvRows(std::string_view text, std::string file, std::vector<std::string_view> columns);

  // Goes to the next row that is not blank; false at the end. Throws on a wrong number of columns.
  bool next();

  std::string_view text(std::size_t column) const { return reader_[column]; }
  // A whole number within [least, most].
  std::int64_t number(std::size_t column, std::int64_t least, std::int64_t most) const;
  // Whole numbers within [0, most], separated by blanks; empty for an empty cell.
  std::vector<std::int64_t> numbers(std::size_t column, std::int64_t most) const;

  std::size_t line() const { return reader_.line(); }
  // Throws InputError "file:line: sentence".
  [[noreturn]] void fail(const std::string& sentence) const { reader_.fail(sentence); }

 private:
  void require_columns() const;
  std::int64_t parse(std::string_view cell, std::size_t column, std::int64_t least, std::int64_t most) const;

  CsvReader reader_;
  std::vector<std::string_view> columns_;
};

}  // namespace memwall
