#include "sim/csv.h"

#include <algorithm>

#include "sim/error.h"
#include "sim/presentable.h"

namespace memwall {

CsvReader::CsvReader(std::string_view text, std::string name, std::size_t first_line)
    : rest_(text), name_(std::move(name)), next_line_(first_line) {
  if (rest_.starts_with("\xef\xbb\xbf")) rest_.remove_prefix(3);
}

std::string_view CsvReader::plain_line() {
  line_ = next_line_++;
  std::string_view line = rest_.substr(0, rest_.find('\n'));
  rest_.remove_prefix(std::min(line.size() + 1, rest_.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool CsvReader::next() {
  cells_.clear();
  unescaped_.clear();
  if (at_end()) return false;
  line_ = next_line_++;
  for (;;) {
    cells_.push_back(cell());
    if (take_line_end()) return true;
    if (!rest_.starts_with(','))
      fail(
          "found a quotation mark or a carriage return amid a field, expected the whole field in quotation marks, and "
          "those inside doubled.");
    rest_.remove_prefix(1);
  }
}

bool CsvReader::next_filled(std::string_view comment) {
  for (;;) {
    if (!comment.empty() && begins_with(comment))
      plain_line();
    else if (!next())
      return false;
    else if (cells_.size() > 1 || !without_blanks(cells_[0]).empty())
      return true;
  }
}

void CsvReader::fail(const std::string& sentence) const {
  throw InputError(name_ + ":" + std::to_string(line_) + ": " + sentence);
}

std::string_view CsvReader::cell() {
  if (rest_.starts_with('"')) return quoted_cell();
  const std::string_view cell = rest_.substr(0, rest_.find_first_of(",\"\r\n"));
  rest_.remove_prefix(cell.size());
  return cell;
}

std::string_view CsvReader::quoted_cell() {
  std::size_t end = 0, doubled = 0;
  for (;; ++doubled) {
    end = rest_.find('"', end + 1);
    if (end == std::string_view::npos) fail("found a quotation mark that is never closed, expected one more.");
    if (!rest_.substr(++end).starts_with('"')) break;
  }
  std::string_view cell = rest_.substr(1, end - 2);
  rest_.remove_prefix(end);
  next_line_ += static_cast<std::size_t>(std::count(cell.begin(), cell.end(), '\n'));
  if (doubled == 0) return cell;
  std::string& text = unescaped_.emplace_back();
  for (std::size_t i = 0; i < cell.size(); ++i) {
    text += cell[i];
    if (cell[i] == '"') ++i;
  }
  return text;
}

bool CsvReader::take_line_end() {
  if (rest_ == "\r") rest_ = {};
  if (rest_.empty()) return true;
  for (const std::string_view end : {"\n", "\r\n"}) {
    if (!rest_.starts_with(end)) continue;
    rest_.remove_prefix(end.size());
    return true;
  }
  return false;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t\r"), text.size());
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

std::string csv_cell(std::string_view text) {
  std::string shown;  // line ends stay: a cell may hold several lines
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\r', at), text.size());
    shown += presentable(text.substr(at, end - at));
    if (end < text.size()) shown += '\r';
    at = end + 1;
  }
  if (shown.find_first_of(",\"\r\n") == std::string::npos) return shown;
  std::string cell = "\"";
  for (const char c : shown) {
    if (c == '"') cell += '"';
    cell += c;
  }
  return cell + '"';
}

}  // namespace memwall
