#include "validate/published/csv_table.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "models/workload/import/bytes/file_text.h"
#include "sim/csv.h"
#include "sim/error.h"

namespace memwall {
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
  const std::string text = read_file_text(path, std::size_t{1} << 26);
  CsvReader reader(text, path.string());
  std::vector<std::string> columns;
  std::vector<CsvTableRow> rows;
  while (reader.next_filled("#")) {
    const auto& cells = reader.cells();
    if (columns.empty()) {
      columns.assign(cells.begin(), cells.end());
      continue;
    }
    if (cells.size() != columns.size() && left_out) {
      ++*left_out;
      continue;
    }
    if (cells.size() != columns.size())
      reader.fail(fmt::format("found {} cells, expected {}.", cells.size(), columns.size()));
    std::map<std::string, std::string> named;
    for (std::size_t i = 0; i < cells.size(); ++i) named.emplace(columns[i], cells[i]);
    rows.emplace_back(fmt::format("{}:{}", path.string(), reader.line()), std::move(named));
  }
  if (columns.empty())
    throw InputError(fmt::format("{}: found no table; expected a line of column names.", path.string()));
  return rows;
}

}  // namespace memwall
