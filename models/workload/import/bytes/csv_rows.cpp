#include "models/workload/import/bytes/csv_rows.h"

#include <fmt/format.h>

#include <charconv>

#include "models/workload/import/bytes/quote_for_message.h"

namespace memwall {

CsvRows::CsvRows(std::string_view text, std::string file, std::vector<std::string_view> columns)
    : reader_(text, std::move(file)), columns_(std::move(columns)) {
  if (reader_.at_end()) {
    reader_.plain_line();
    fail(fmt::format("the file is empty; expected the columns {}.", fmt::join(columns_, ",")));
  }
  reader_.next();
  require_columns();
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (reader_[i] != columns_[i])
      fail(fmt::format("column {} is {}; expected '{}'.", i + 1, quote_for_message(reader_[i]), columns_[i]));
}

bool CsvRows::next() {
  if (!reader_.next_filled()) return false;
  require_columns();
  return true;
}

void CsvRows::require_columns() const {
  if (reader_.cells().size() != columns_.size())
    fail(
        fmt::format("{} columns; expected {}: {}.", reader_.cells().size(), columns_.size(), fmt::join(columns_, ",")));
}

std::int64_t CsvRows::number(std::size_t column, std::int64_t least, std::int64_t most) const {
  return parse(reader_[column], column, least, most);
}

std::vector<std::int64_t> CsvRows::numbers(std::size_t column, std::int64_t most) const {
  std::vector<std::int64_t> result;
  std::string_view cell = reader_[column];
  while (!cell.empty()) {
    const std::size_t blank = cell.find(' ');
    const std::string_view word = cell.substr(0, blank);
    cell.remove_prefix(blank == std::string_view::npos ? cell.size() : blank + 1);
    if (!word.empty()) result.push_back(parse(word, column, 0, most));
  }
  return result;
}

std::int64_t CsvRows::parse(std::string_view cell, std::size_t column, std::int64_t least, std::int64_t most) const {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || value < least || value > most)
    fail(fmt::format("{} is {}; expected a whole number from {} to {}.", columns_[column], quote_for_message(cell),
                     least, most));
  return value;
}

}  // namespace memwall
