#include "cli/print/validation_table.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "cli/print/table_cells.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr const char* kNone = "-";

std::string figure(const ValidationRow& row, double value) {
  if (row.unit == "s") return human_time(from_seconds(value));
  if (row.unit == "B") return human_bytes(static_cast<Bytes>(std::llround(value)));
  if (row.unit == "B/s") return human_rate(value);
  if (row.unit == "share") return percent_text(value);
  return plain_number(value);
}

bool has_figures(const ValidationRow& row) { return row.status != ValidationStatus::not_measured; }

Cell figure_cell(const ValidationRow& row, double value) {
  return has_figures(row) ? number_cell(figure(row, value), plain_number(value)) : number_cell(kNone, "null");
}

Cell known_share_cell(bool known, double share, const char* format) {
  return known ? number_cell(fmt::format(fmt::runtime(format), share * 100), plain_number(share))
               : number_cell(kNone, "null");
}

std::string count_of_each(const std::vector<ValidationRow>& rows) {
  std::array<std::size_t, 5> counts{};
  for (const ValidationRow& row : rows) ++counts[static_cast<std::size_t>(row.status)];
  std::string text;
  for (std::size_t s = 0; s < counts.size(); ++s)
    if (counts[s] > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[s], to_string(static_cast<ValidationStatus>(s)));
  return text.empty() ? "nothing to compare" : text;
}

}  // namespace

Table validation_table(const std::vector<ValidationRow>& rows) {
  Table table{.name = "validation",
              .title = fmt::format("Predicted against measured: {}", count_of_each(rows)),
              .columns = {"rung", "case", "metric", "unit", "measured", "predicted", "error", "tolerance", "status",
                          "date", "machine"},
              .headings = {},
              .rows = {}};
  for (const ValidationRow& row : rows)
    table.rows.push_back({cell(row.rung), cell(row.case_name), cell(row.metric), cell(row.unit),
                          figure_cell(row, row.measured), figure_cell(row, row.predicted),
                          known_share_cell(has_figures(row), row.error(), "{:+.1f} %"),
                          known_share_cell(row.tolerance > 0, row.tolerance, "{:.4g} %"), cell(to_string(row.status)),
                          cell(row.date.substr(0, 10)), cell(row.machine)});
  return table;
}

std::string between_marks(const std::string& page, const std::string& text, const std::string& name) {
  const std::string begin = "<!-- table begin -->", end = "<!-- table end -->";
  const std::size_t first = page.find(begin), last = page.find(end);
  if (first == std::string::npos || last == std::string::npos || last < first)
    throw InputError(fmt::format("{}: found no place for the table; expected the lines {} and {}.", name, begin, end));
  return page.substr(0, first + begin.size()) + "\n\n" + text + "\n" + page.substr(last);
}

std::string with_validation_table(const std::string& readme, const std::vector<ValidationRow>& rows,
                                  const std::string& name) {
  return between_marks(readme, to_text(validation_table(rows), Format::md), name);
}

std::vector<std::string> outside_sentences(const std::vector<ValidationRow>& rows) {
  std::vector<std::string> sentences;
  for (const ValidationRow& row : rows) {
    if (row.status != ValidationStatus::outside) continue;
    sentences.push_back(fmt::format(
        "{}: {}, {}, {}: measured {}, predicted {}, {:+.1f} %{}.", row.machine, row.rung, row.case_name, row.metric,
        figure(row, row.measured), figure(row, row.predicted), row.error() * 100,
        row.tolerance > 0 ? fmt::format("; the tolerance is {:.4g} %", row.tolerance * 100) : std::string()));
  }
  return sentences;
}

}  // namespace memwall
