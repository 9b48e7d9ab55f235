#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"
#include "traces/run/json_text.h"

namespace memwall {
namespace {

// Columns on the screen, near enough: bytes that do not continue a UTF-8 character.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return right ? space + text : text + space;
}

const std::vector<std::string>& headings_of(const Table& t) { return t.headings.empty() ? t.columns : t.headings; }

constexpr std::size_t kLine = 110;      // of prose
constexpr std::size_t kTerminal = 120;  // of tables that wrap

// The words of a text in lines of at most `width`.
std::vector<std::string> lines_of(const std::string& text, std::size_t width) {
  std::vector<std::string> lines{""};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!lines.back().empty() && width_of(lines.back()) + 1 + width_of(word) > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    at = end + 1;
  }
  return lines;
}

std::string wrapped(const std::string& text, std::size_t width, const std::string& between) {
  std::string all;
  for (const std::string& line : lines_of(text, width)) all += (all.empty() ? "" : between) + line;
  return all;
}

std::string title_of(const Table& t) {
  if (t.title.empty()) return "";
  return (t.wrap ? wrapped(t.title, kTerminal, "\n") : t.title) + "\n";
}

std::string prose(const Table& t) {
  std::string text = title_of(t);
  for (const auto& row : t.rows) text += "  - " + wrapped(row.front().text, kLine - 4, "\n    ") + "\n";
  return text;
}

// What the last column of a table may take, so that its lines fit a terminal; its own width where they do, or where too
// little is left to read.
std::size_t width_of_last(const Table& t, std::size_t before, std::size_t own) {
  constexpr std::size_t kReadable = 30;
  const bool wraps = t.wrap && before + own > kTerminal && before + kReadable <= kTerminal;
  return wraps ? kTerminal - before : own;
}

std::string plain_table(const Table& t) {
  if (t.prose) return prose(t);
  std::string text = title_of(t);
  if (t.rows.empty()) return text + "  (none)\n";
  const auto& headings = headings_of(t);
  std::vector<std::size_t> widths;
  for (const std::string& h : headings) widths.push_back(width_of(h));
  for (const auto& row : t.rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c].text));
  const std::size_t last = widths.size() - 1;
  std::size_t before = 2;
  for (std::size_t c = 0; c < last; ++c) before += widths[c] + 2;
  const std::size_t width = width_of_last(t, before, widths[last]);
  const auto line = [&](const auto& text_of) {
    std::string out = "  ";
    for (std::size_t c = 0; c < last; ++c) out += padded(text_of(c), widths[c], t.rows.front()[c].number) + "  ";
    out += width < widths[last] ? wrapped(text_of(last), width, "\n" + std::string(before, ' '))
                                : padded(text_of(last), widths[last], t.rows.front()[last].number);
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  };
  const bool named = std::any_of(headings.begin(), headings.end(), [](const std::string& h) { return !h.empty(); });
  if (named) text += line([&](std::size_t c) { return headings[c]; });
  for (const auto& row : t.rows) text += line([&](std::size_t c) { return row[c].text; });
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
    for (const auto& row : t.rows) text += "- " + row.front().text + "\n";
    return text;
  }
  std::string rule = "|";
  text += "|";
  for (std::size_t c = 0; c < t.columns.size(); ++c) {
    text += " " + markdown_text(headings_of(t)[c]) + " |";
    rule += !t.rows.empty() && t.rows.front()[c].number ? "---:|" : "---|";
  }
  text += "\n" + rule + "\n";
  for (const auto& row : t.rows) {
    text += "|";
    for (const Cell& c : row) text += " " + markdown_text(c.text) + " |";
    text += "\n";
  }
  return text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string csv(const Table& t) {
  std::string text;
  for (std::size_t c = 0; c < t.columns.size(); ++c) text += (c ? "," : "") + csv_field(t.columns[c]);
  text += "\n";
  for (const auto& row : t.rows) {
    for (std::size_t c = 0; c < row.size(); ++c) text += (c ? "," : "") + csv_field(row[c].raw);
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
      text += (c ? ", " : "") + json_quoted(t.columns[c]) + ": " + (value.number ? value.raw : json_quoted(value.raw));
    }
    text += "}";
  }
  return text + (t.rows.empty() ? "]" : "\n" + indent + "]");
}

}  // namespace

Format parse_format(const std::string& name) {
  static const std::vector<std::string> names{"table", "json", "csv", "md"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<Format>(i);
  const std::string near = nearest_name(name, names);
  throw UsageError(fmt::format("--format \"{}\" is unknown{}; expected table, json, csv or md.", name,
                               near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near)));
}

Cell cell(std::string text) { return {text, text, false}; }
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
        text += csv_field(t.name) + "," + csv_field(name) + "," + csv_field(t.columns[c]) + "," +
                csv_field(row[c].raw) + "\n";
    }
  return text;
}

}  // namespace memwall
