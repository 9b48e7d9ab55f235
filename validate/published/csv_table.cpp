#include "validate/published/csv_table.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <sstream>

#include "models/workload/import/bytes/file_text.h"
#include "sim/error.h"

namespace memwall {
namespace {

// Cells of one line; a quoted cell may hold commas, and a doubled quote stands for one.
std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else if (line[i] != '\r') {
      cells.back() += line[i];
    }
  }
  return cells;
}

}  // namespace

void CsvTableRow::fail(const std::string& sentence) const { throw InputError(place_ + ": " + sentence); }

const std::string& CsvTableRow::text(const std::string& column) const {
  const auto found = cells_.find(column);
  if (found == cells_.end()) fail(fmt::format("found no column \"{}\", which this table is expected to have.", column));
  return found->second;
}

double CsvTableRow::number(const std::string& column) const {
  const std::string& cell = text(column);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value) || value <= 0)
    fail(fmt::format("column \"{}\": found \"{}\", expected a number above 0.", column, cell));
  return value;
}

std::int64_t CsvTableRow::integer(const std::string& column) const {
  const double value = number(column);
  if (value != std::floor(value) || value > std::ldexp(1.0, 40))
    fail(fmt::format("column \"{}\": found \"{}\", expected a whole number.", column, text(column)));
  return static_cast<std::int64_t>(value);
}

std::vector<CsvTableRow> read_csv_table(const std::filesystem::path& path, std::size_t* left_out) {
  std::istringstream lines(read_file_text(path, std::size_t{1} << 26));
  std::vector<std::string> columns;
  std::vector<CsvTableRow> rows;
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    if (line.empty() || line == "\r" || line[0] == '#') continue;
    std::vector<std::string> cells = split(line);
    const std::string place = fmt::format("{}:{}", path.string(), number);
    if (columns.empty()) {
      columns = std::move(cells);
      continue;
    }
    if (cells.size() != columns.size() && left_out) {
      ++*left_out;
      continue;
    }
    if (cells.size() != columns.size())
      throw InputError(fmt::format("{}: found {} cells, expected {}.", place, cells.size(), columns.size()));
    std::map<std::string, std::string> named;
    for (std::size_t i = 0; i < cells.size(); ++i) named.emplace(columns[i], std::move(cells[i]));
    rows.emplace_back(place, std::move(named));
  }
  if (columns.empty())
    throw InputError(fmt::format("{}: found no table; expected a line of column names.", path.string()));
  return rows;
}

}  // namespace memwall
