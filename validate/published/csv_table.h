// A table of published measurements: comma-separated, lines that begin with '#' are its caveats,
// the first other line names the columns. Columns that nobody asks for are skipped.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace memwall {

class CsvTableRow {
 public:
  CsvTableRow(std::string place, std::map<std::string, std::string> cells)
      : place_(std::move(place)), cells_(std::move(cells)) {}

  // Each throws InputError "FILE:LINE: ..." where the column is absent or its text is no such number.
  const std::string& text(const std::string& column) const;
  double number(const std::string& column) const;         // > 0
  std::int64_t integer(const std::string& column) const;  // 1 to 2^40
  bool has(const std::string& column) const { return cells_.contains(column); }

 private:
  [[noreturn]] void fail(const std::string& sentence) const;

  std::string place_;  // "FILE:LINE"
  std::map<std::string, std::string> cells_;
};

// Quoted cells may hold commas. Throws InputError; where `left_out` is given, rows with too many or too few cells are
// counted there instead.
std::vector<CsvTableRow> read_csv_table(const std::filesystem::path& path, std::size_t* left_out = nullptr);

}  // namespace memwall
