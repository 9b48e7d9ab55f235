// Tables, in the four forms that every verb offers.
//
// The form for people is laid out for the terminal (terminal_width) and, where it shows colors, has its headings in
// bold and what does not fit in red.
//
// A cell has a text for people ("39.34 GB") and a raw value for programs
// ("39343923200"); table and md show the first, csv and json the second.
#pragma once

#include <string>
#include <vector>

#include "cli/print/style.h"

namespace memwall {

enum class Format { table, json, csv, md };
const std::vector<std::string>& format_names();  // in this order
// Throws UsageError with the nearest valid name.
Format parse_format(const std::string& name);

struct Cell {
  std::string text;
  std::string raw;
  bool number = false;  // aligned right; unquoted in JSON, null where `raw` is empty
  bool right = false;   // aligned right, as a number is: "aten::mm" among numbers
};
Cell cell(std::string text);  // for people and programs alike
Cell cell(std::string text, std::string raw);
Cell number_cell(std::string text, std::string raw);

struct Table {
  std::string name;                   // the key in CSV and JSON: "links"
  std::string title;                  // for people, with what the figures include; "" = none
  std::vector<std::string> columns;   // lower_snake, as in JSON
  std::vector<std::string> headings;  // for people; empty = `columns`
  std::vector<std::vector<Cell>> rows;
  bool prose = false;  // one column of sentences: wrapped on a terminal, a list in Markdown
  // Where lines would not fit a terminal: the title wraps, and the last column, or all that hold words if that alone
  // leaves too little of it to read; where numbers alone are too wide, a row goes on below itself.
  bool wrap = true;
  bool bullets = true;          // prose: a list; else paragraphs
  bool detail = false;          // shown to people with --full alone (cli/print/screen.h)
  std::size_t screen_rows = 0;  // rows shown without --full; 0 = all
};

// `text` broken at blanks into lines of at most `width` columns (a longer word stays whole), with `between` at each
// break.
std::string wrapped(const std::string& text, std::size_t width, const std::string& between);

// One table: rows as they are. JSON is an array of objects.
std::string to_text(const Table& table, Format format);

// Several: table and md one after the other; csv as table,row,column,value (the row's name is
// its first cell, or its number where the table is prose); json an object of arrays, of strings where the table is
// the verdict.
std::string to_text(const std::vector<Table>& tables, Format format);

// A field of a JSON object.
struct JsonField {
  std::string key, raw;  // raw: JSON as it is
};
JsonField text_field(std::string key, const std::string& text);
JsonField texts_field(std::string key, const std::vector<std::string>& texts);
// The tables as an object, behind these fields.
std::string to_json(const std::vector<JsonField>& first, const std::vector<Table>& tables);

}  // namespace memwall
