#include "cli/print/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

// As lines_of, but words that are longer than a line are broken.
std::vector<std::string> broken_lines_of(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& line : lines_of(text, width)) {
    std::string piece;
    for (std::size_t at = 0; at < line.size();) {
      if (count_characters(piece) == width) lines.push_back(std::exchange(piece, ""));
      const std::size_t length = std::max<std::size_t>(1, utf8_length(std::string_view(line).substr(at)));
      piece += line.substr(at, length);
      at += length;
    }
    lines.push_back(piece);
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

// What a column takes unwrapped, what it must have so that no word is broken, and so that no number is.
struct ColumnWidth {
  std::size_t own = 0, words = 0, least = 0;
};

std::vector<ColumnWidth> column_widths(const Table& t) {
  constexpr std::size_t kUnbroken = 30;  // names of kernels are longer than any column can be
  std::vector<ColumnWidth> widths;
  for (const std::string& heading : headings_of(t))
    widths.push_back({count_characters(heading), longest_word(heading), std::min(kUnbroken, longest_word(heading))});
  for (const auto& row : t.rows)
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::size_t own = count_characters(row[c].text);
      const std::size_t words = is_right(t, c) ? own : longest_word(row[c].text);
      widths[c].own = std::max(widths[c].own, own);
      widths[c].words = std::max(widths[c].words, words);
      widths[c].least = std::max(widths[c].least, is_right(t, c) ? own : std::min(kUnbroken, words));
    }
  return widths;
}

// Columns whose cells stand side by side: from `first` on, so wide each.
struct ColumnGroup {
  std::size_t first = 0, indent = 0;
  std::vector<std::size_t> widths;
};

// Takes characters from whichever column is widest and has more than its `least`, until all fit `room`, if they can.
void take_from_widest(ColumnGroup& group, const std::vector<ColumnWidth>& columns, std::size_t ColumnWidth::*least,
                      std::size_t room) {
  std::size_t all = 0;
  for (const std::size_t width : group.widths) all += width + 2;
  for (; all > room; --all) {
    std::size_t* widest = nullptr;
    for (std::size_t c = 0; c < group.widths.size(); ++c)
      if (group.widths[c] > columns[group.first + c].*least && (!widest || group.widths[c] > *widest))
        widest = &group.widths[c];
    if (!widest) return;
    --*widest;
  }
}

// Lets the columns of a group fit a terminal, if they can: the last gives way where enough is left of it to read, else
// whichever is widest, and words are broken only where that is not enough.
void fit(ColumnGroup& group, const std::vector<ColumnWidth>& columns) {
  constexpr std::size_t kReadable = 30;
  const std::size_t room = terminal_width() - group.indent;
  std::size_t all = 0;
  for (const std::size_t width : group.widths) all += width + 2;
  if (all <= room) return;
  std::size_t& last = group.widths.back();
  const std::size_t before = all - last;
  if (before + std::max(kReadable, columns[group.first + group.widths.size() - 1].words) <= room) {
    last = room - before;
    return;
  }
  take_from_widest(group, columns, &ColumnWidth::words, room);
  take_from_widest(group, columns, &ColumnWidth::least, room);
}

// One group; where numbers alone are wider than the terminal, several, one below the other.
std::vector<ColumnGroup> fitting_groups(const Table& t) {
  constexpr std::size_t kIndent = 4;
  const std::vector<ColumnWidth> columns = column_widths(t);
  std::vector<ColumnGroup> groups(1);
  std::size_t least = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    least += columns[c].least + 2;
    if (t.wrap && least > terminal_width() && !groups.back().widths.empty()) {
      groups.push_back({c, kIndent, {}});
      least = kIndent + columns[c].least + 2;
    }
    groups.back().widths.push_back(columns[c].own);
  }
  if (t.wrap)
    for (ColumnGroup& group : groups) fit(group, columns);
  return groups;
}

enum class RowStyle { heading, values };

// A group's part of one row, on as many lines as its cells need.
std::string row_text(const Table& t, const ColumnGroup& group, const std::vector<std::string>& cells, RowStyle style) {
  std::vector<std::vector<std::string>> columns;
  std::size_t height = 1;
  for (std::size_t c = 0; c < group.widths.size(); ++c) {
    const std::string& text = cells[group.first + c];
    const bool whole = count_characters(text) <= group.widths[c];  // its blanks are kept
    columns.push_back(whole ? std::vector<std::string>{text} : broken_lines_of(text, group.widths[c]));
    height = std::max(height, columns.back().size());
  }
  std::string text;
  for (std::size_t l = 0; l < height; ++l) {
    std::string line(group.indent, ' ');
    for (std::size_t c = 0; c < columns.size(); ++c)
      line += "  " + padded(l < columns[c].size() ? columns[c][l] : "", group.widths[c], is_right(t, group.first + c));
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
  const std::vector<ColumnGroup> groups = fitting_groups(t);
  const bool named = std::any_of(headings.begin(), headings.end(), [](const std::string& h) { return !h.empty(); });
  if (named)
    for (const ColumnGroup& group : groups) text += row_text(t, group, headings, RowStyle::heading);
  for (const auto& row : t.rows) {
    std::vector<std::string> cells;
    for (const Cell& c : row) cells.push_back(c.text);
    for (const ColumnGroup& group : groups) text += row_text(t, group, cells, RowStyle::values);
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

// The answer in sentences: strings, whichever verb says it.
std::string json_sentences(const Table& t, const std::string& indent) {
  std::string text = "[";
  for (std::size_t r = 0; r < t.rows.size(); ++r)
    text += (r ? ",\n" : "\n") + indent + "  " + json_quoted(t.rows[r].front().raw);
  return text + (t.rows.empty() ? "]" : "\n" + indent + "]");
}

std::string json(const Table& t, const std::string& indent) {
  if (t.prose && t.name == "verdict") return json_sentences(t, indent);
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

JsonField text_field(std::string key, const std::string& text) { return {std::move(key), json_quoted(text)}; }

JsonField texts_field(std::string key, const std::vector<std::string>& texts) {
  std::string raw;
  for (const std::string& text : texts) raw += (raw.empty() ? "" : ", ") + json_quoted(text);
  return {std::move(key), "[" + raw + "]"};
}

std::string to_json(const std::vector<JsonField>& first, const std::vector<Table>& tables) {
  std::string text;
  const auto add = [&](const std::string& key, const std::string& raw) {
    text += (text.empty() ? "{\n  " : ",\n  ") + json_quoted(key) + ": " + raw;
  };
  for (const JsonField& field : first) add(field.key, field.raw);
  for (const Table& t : tables) add(t.name, json(t, "  "));
  return text + "\n}\n";
}

std::string to_text(const std::vector<Table>& tables, Format format) {
  std::string text;
  if (format == Format::table || format == Format::md) {
    for (const Table& t : tables) text += (text.empty() ? "" : "\n") + to_text(t, format);
    return text;
  }
  if (format == Format::json) return to_json({}, tables);
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
