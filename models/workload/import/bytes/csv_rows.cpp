#include "models/workload/import/bytes/csv_rows.h"

#include <fmt/format.h>

#include <charconv>

#include "models/workload/import/bytes/quote_for_message.h"
#include "sim/error.h"

namespace memwall {

CsvRows::CsvRows(std::string_view text, std::string file, std::vector<std::string_view> columns)
    : rest_(text), file_(std::move(file)), columns_(std::move(columns)) {
  std::string_view header;
  if (!next_line(header)) {
    ++line_;
    fail(fmt::format("the file is empty; expected the columns {}.", fmt::join(columns_, ",")));
  }
  split(header);
  if (cells_.size() != columns_.size())
    fail(fmt::format("{} columns; expected {}: {}.", cells_.size(), columns_.size(), fmt::join(columns_, ",")));
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (cells_[i] != columns_[i])
      fail(fmt::format("column {} is {}; expected '{}'.", i + 1, quote_for_message(cells_[i]), columns_[i]));
}

bool CsvRows::next() {
  std::string_view line;
  do {
    if (!next_line(line)) return false;
  } while (line.empty());
  split(line);
  if (cells_.size() != columns_.size())
    fail(fmt::format("{} columns; expected {}: {}.", cells_.size(), columns_.size(), fmt::join(columns_, ",")));
  return true;
}

std::int64_t CsvRows::number(std::size_t column, std::int64_t least, std::int64_t most) const {
  return parse(cells_[column], column, least, most);
}

std::vector<std::int64_t> CsvRows::numbers(std::size_t column, std::int64_t most) const {
  std::vector<std::int64_t> result;
  std::string_view cell = cells_[column];
  while (!cell.empty()) {
    const std::size_t blank = cell.find(' ');
    const std::string_view word = cell.substr(0, blank);
    cell.remove_prefix(blank == std::string_view::npos ? cell.size() : blank + 1);
    if (!word.empty()) result.push_back(parse(word, column, 0, most));
  }
  return result;
}

void CsvRows::fail(const std::string& sentence) const {
  throw InputError(fmt::format("{}:{}: {}", file_, line_, sentence));
}

bool CsvRows::next_line(std::string_view& line) {
  if (rest_.empty()) return false;
  ++line_;
  const std::size_t end = rest_.find('\n');
  line = rest_.substr(0, end);
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return true;
}

void CsvRows::split(std::string_view line) {
  cells_.clear();
  for (;;) {
    const std::size_t comma = line.find(',');
    cells_.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

std::int64_t CsvRows::parse(std::string_view cell, std::size_t column, std::int64_t least, std::int64_t most) const {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || value < least || value > most)
    fail(fmt::format("{} is {}; expected a whole number from {} to {}.", columns_[column], quote_for_message(cell), least,
                     most));
  return value;
}

}  // namespace memwall
