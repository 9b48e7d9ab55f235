#include "cli/print/screen.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace memwall {

std::string screen_text(std::vector<Table> tables, Format format, bool full) {
  if (full || format == Format::json || format == Format::csv) return to_text(tables, format);
  std::vector<Table> shown;
  std::vector<std::string> rest;
  for (Table& table : tables) {
    if (table.detail) {
      rest.push_back(table.name);
      continue;
    }
    if (table.screen_rows > 0 && table.rows.size() > table.screen_rows) {
      rest.push_back(fmt::format("{} ({} more)", table.name, table.rows.size() - table.screen_rows));
      table.rows.resize(table.screen_rows);
    }
    shown.push_back(std::move(table));
  }
  if (!rest.empty()) {
    Table more{.name = "more", .title = "", .columns = {"note"}, .headings = {""}, .rows = {}, .prose = true};
    more.bullets = false;
    more.rows.push_back({cell(fmt::format("With --full also: {}.", fmt::join(rest, ", ")))});
    shown.push_back(std::move(more));
  }
  return to_text(shown, format);
}

}  // namespace memwall
