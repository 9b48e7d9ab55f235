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

// A sentence as an item of a list, in lines that fit a terminal.
std::string wrapped(const std::string& sentence) {
  constexpr std::size_t kLine = 110;
  std::string text = "  - ";
  std::size_t column = text.size();
  for (std::size_t at = 0; at < sentence.size();) {
    const std::size_t end = std::min(sentence.find(' ', at), sentence.size());
    const std::string word = sentence.substr(at, end - at);
    if (column > 4 && column + 1 + width_of(word) > kLine) {
      text += "\n    ";
      column = 4;
    }
    if (column > 4) text += " ";
    text += word;
    column += width_of(word) + 1;
    at = end + 1;
  }
  return text + "\n";
}

std::string prose(const Table& t) {
  std::string text = t.title.empty() ? "" : t.title + "\n";
  for (const auto& row : t.rows) text += wrapped(row.front().text);
  return text;
}

std::string plain_table(const Table& t) {
  if (t.prose) return prose(t);
  std::string text = t.title.empty() ? "" : t.title + "\n";
  if (t.rows.empty()) return text + "  (none)\n";
  const auto& headings = headings_of(t);
  std::vector<std::size_t> widths;
  for (const std::string& h : headings) widths.push_back(width_of(h));
  for (const auto& row : t.rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c].text));
  const auto line = [&](const auto& text_of) {
    std::string out = " ";
    for (std::size_t c = 0; c < headings.size(); ++c)
      out += " " + padded(text_of(c), widths[c], t.rows.front()[c].number) + (c + 1 < headings.size() ? " " : "");
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
