#include "cli/print/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/print/style.h"
#include "sim/csv.h"
#include "sim/error.h"
#include "sim/json_text.h"
#include "sim/presentable.h"
#include "sim/utf8.h"

namespace memwall {
namespace {

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, count_characters(text)), ' ');
  return right ? space + text : text + space;
}

const std::vector<std::string>& headings_of(const Table& t) { return t.headings.empty() ? t.columns : t.headings; }

constexpr std::size_t kLine = 110;  // of prose

// The words of a text in lines of at most `width`.
std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
  std::vector<std::string> lines{""};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!lines.back().empty() && count_characters(lines.back()) + 1 + count_characters(word) > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    at = end + 1;
  }
  return lines;
}

std::string title_of(const Table& t) {
  if (t.title.empty()) return "";
  std::string text;
  for (std::size_t at = 0; at <= t.title.size();) {
    const std::size_t end = std::min(t.title.find('\n', at), t.title.size());
    const std::string part = t.title.substr(at, end - at);
    for (const std::string& line : t.wrap ? lines_of(part, terminal_width()) : std::vector{part})
      text += styled(line, Style::heading) + "\n";
    at = end + 1;
  }
  return text;
}

std::string prose(const Table& t) {
  const std::size_t line = std::min(kLine, terminal_width());
  std::string text = title_of(t);
  for (const auto& row : t.rows)
    text += t.bullets ? "  - " + with_alarms(wrapped(row.front().text, line - 4, "\n    ")) + "\n"
                      : "  " + with_alarms(wrapped(row.front().text, line - 2, "\n  ")) + "\n";
  return text;
}

std::size_t longest_word(const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& line : lines_of(text, 1)) longest = std::max(longest, count_characters(line));
  return longest;
}

bool is_right(const Table& t, std::size_t column) {
  const Cell& first = t.rows.front()[column];
  return first.number || first.right;
}

// What a column takes unwrapped, and what it must have so that no word and no number is cut.
struct ColumnWidth {
  std::size_t own = 0, least = 0;
};

std::vector<ColumnWidth> column_widths(const Table& t) {
  std::vector<ColumnWidth> widths;
  for (const std::string& heading : headings_of(t))
    widths.push_back({count_characters(heading), longest_word(heading)});
  for (const auto& row : t.rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::size_t own = count_characters(row[c].text);
      widths[c].own = std::max(widths[c].own, own);
      widths[c].least = std::max(widths[c].least, is_right(t, c) ? own : longest_word(row[c].text));
    }
  return widths;
}

// Widths with which the lines fit a terminal, if they can: the last column gives way where enough is left of it to
// read, else one character after the other whichever is widest.
std::vector<std::size_t> fitting_widths(const Table& t) {
  constexpr std::size_t kReadable = 30;
  const std::size_t terminal = terminal_width();
  const std::vector<ColumnWidth> columns = column_widths(t);
  std::vector<std::size_t> widths;
  std::size_t all = 0;
  for (const ColumnWidth& column : columns) {
    widths.push_back(column.own);
    all += column.own + 2;
  }
  if (!t.wrap || all <= terminal) return widths;
  const std::size_t last = widths.size() - 1, before = all - widths[last];
  if (before + std::max(kReadable, columns[last].least) <= terminal) {
    widths[last] = terminal - before;
    return widths;
  }
  for (; all > terminal; --all) {
    std::size_t widest = columns.size();
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (widths[c] > columns[c].least && (widest == columns.size() || widths[c] > widths[widest])) widest = c;
    if (widest == columns.size()) break;
    --widths[widest];
  }
  return widths;
}

enum class RowStyle { heading, values };

// One row, on as many lines as its cells need.
std::string row_text(const Table& t, const std::vector<std::size_t>& widths, const std::vector<std::string>& cells,
                     RowStyle style) {
  std::vector<std::vector<std::string>> columns;
  std::size_t height = 1;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const bool whole = count_characters(cells[c]) <= widths[c];  // its blanks are kept
    columns.push_back(whole ? std::vector<std::string>{cells[c]} : lines_of(cells[c], widths[c]));
    height = std::max(height, columns.back().size());
  }
  std::string text;
  for (std::size_t l = 0; l < height; ++l) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c)
      line += "  " + padded(l < columns[c].size() ? columns[c][l] : "", widths[c], is_right(t, c));
    line.erase(line.find_last_not_of(' ') + 1);
    text += (style == RowStyle::heading ? styled(line, Style::heading) : with_alarms(line)) + "\n";
  }
  return text;
}

std::string plain_table(const Table& t) {
  if (t.prose) return prose(t);
  std::string text = title_of(t);
  if (t.rows.empty()) return text + "  (none)\n";
  const auto& headings = headings_of(t);
  const std::vector<std::size_t> widths = fitting_widths(t);
  const bool named = std::any_of(headings.begin(), headings.end(), [](const std::string& h) { return !h.empty(); });
  if (named) text += row_text(t, widths, headings, RowStyle::heading);
  for (const auto& row : t.rows) {
    std::vector<std::string> cells;
    for (const Cell& c : row) cells.push_back(c.text);
    text += row_text(t, widths, cells, RowStyle::values);
  }
  return text;
}

std::string markdown_text(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : c == '\n' ? std::string(" ") : std::string(1, c);
  return out;
}

std::string markdown(const Table& t) {
  std::string text = t.title.empty() ? "" : "### " + markdown_text(t.title) + "\n\n";
  if (t.prose) {
    for (const auto& row : t.rows) text += (t.bullets ? "- " : "") + row.front().text + (t.bullets ? "\n" : "\n\n");
    return text;
  }
  std::string rule = "|";
  text += "|";
  for (std::size_t c = 0; c < t.columns.size(); ++c) {
    text += " " + markdown_text(headings_of(t)[c]) + " |";
    rule += !t.rows.empty() && is_right(t, c) ? "---:|" : "---|";
  }
  text += "\n" + rule + "\n";
  for (const auto& row : t.rows) {
    text += "|";
    for (const Cell& c : row) text += " " + markdown_text(c.text) + " |";
    text += "\n";
  }
  return text;
}

std::string csv(const Table& t) {
  std::string text;
  for (std::size_t c = 0; c < t.columns.size(); ++c) text += (c ? "," : "") + csv_cell(t.columns[c]);
  text += "\n";
  for (const auto& row : t.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) text += (c ? "," : "") + csv_cell(row[c].raw);
    text += "\n";
  }
  return text;
}

std::string json(const Table& t, const std::string& indent) {
  std::string text = "[";
  for (std::size_t r = 0; r < t.rows.size(); ++r) {
    text += (r ? ",\n" : "\n") + indent + "  {";
    for (std::size_t c = 0; c < t.columns.size(); ++c) {
      const Cell& value = t.rows[r][c];
      text += (c ? ", " : "") + json_quoted(t.columns[c]) + ": " +
              (value.number ? (value.raw.empty() ? "null" : value.raw) : json_quoted(value.raw));
    }
    text += "}";
  }
  return text + (t.rows.empty() ? "]" : "\n" + indent + "]");
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t width, const std::string& between) {
  std::string all;
  for (const std::string& line : lines_of(text, width)) all += (all.empty() ? "" : between) + line;
  return all;
}

const std::vector<std::string>& format_names() {
  static const std::vector<std::string> names{"table", "json", "csv", "md"};
  return names;
}

Format parse_format(const std::string& name) {
  const std::vector<std::string>& names = format_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Format>(i);
  const std::string near = nearest_name(name, names);
  throw UsageError(fmt::format("--format \"{}\" is unknown{}; expected table, json, csv or md.", name,
                               near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near)));
}

Cell cell(std::string text) {
  text = presentable_line(text);  // before columns are laid out
  return {text, text, false};
}
Cell cell(std::string text, std::string raw) { return {presentable_line(text), std::move(raw), false}; }
Cell number_cell(std::string text, std::string raw) { return {std::move(text), std::move(raw), true}; }

std::string to_text(const Table& table, Format format) {
  switch (format) {
    case Format::table:
      return plain_table(table);
    case Format::md:
      return markdown(table);
    case Format::csv:
      return csv(table);
    case Format::json:
      return json(table, "") + "\n";
  }
  return "";
}

std::string to_text(const std::vector<Table>& tables, Format format) {
  std::string text;
  if (format == Format::table || format == Format::md) {
    for (const Table& t : tables) text += (text.empty() ? "" : "\n") + to_text(t, format);
    return text;
  }
  if (format == Format::json) {
    for (const Table& t : tables)
      text += (text.empty() ? "{\n  " : ",\n  ") + json_quoted(t.name) + ": " + json(t, "  ");
    return text + "\n}\n";
  }
  text = "table,row,column,value\n";
  for (const Table& t : tables)
    for (std::size_t r = 0; r < t.rows.size(); ++r) {
      const auto& row = t.rows[r];
      const std::string name = t.prose ? std::to_string(r + 1) : row[0].raw;
      for (std::size_t c = t.prose ? 0 : 1; c < row.size(); ++c)
        text +=
            csv_cell(t.name) + "," + csv_cell(name) + "," + csv_cell(t.columns[c]) + "," + csv_cell(row[c].raw) + "\n";
    }
  return text;
}

}  // namespace memwall
