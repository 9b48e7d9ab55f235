#include "cli/print/published_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/print/table_cells.h"

namespace memwall {
namespace {

std::string figure(const PublishedResult& r, double value) {
  return r.unit == "s" ? human_time(from_seconds(value)) : human_bytes(static_cast<Bytes>(std::llround(value)));
}

Cell percent(bool known, double share) {
  return known ? number_cell(fmt::format("{:+.1f} %", share * 100), plain_number(share)) : number_cell("-", "null");
}

Cell unsigned_percent(bool known, double share) { return known ? share_cell(share) : number_cell("-", "null"); }

Table errors_table(const std::vector<PublishedResult>& results) {
  Table table{
      .name = "errors",
      .title = "Error of predictions against published measurements, by table",
      .columns = {"table", "metric", "rows", "median_error", "p90_error", "aim_of_the_median", "not_predicted"},
      .headings = {"table", "metric", "rows", "median error", "p90 error", "aim of the median", "not predicted"},
      .rows = {},
      .wrap = true};
  for (const PublishedErrors& e : published_errors(results))
    table.rows.push_back({cell(e.table), cell(e.metric), number_cell(fmt::to_string(e.rows), fmt::to_string(e.rows)),
                          unsigned_percent(e.rows > 0, e.median), unsigned_percent(e.rows > 0, e.p90),
                          unsigned_percent(true, e.aim),
                          number_cell(fmt::to_string(e.not_predicted), fmt::to_string(e.not_predicted))});
  return table;
}

Table rows_table(const std::vector<PublishedResult>& results) {
  Table table{.name = "published",
              .title = "Every row that is predicted",
              .columns = {"table", "row", "metric", "unit", "measured", "predicted", "low", "high", "error"},
              .headings = {"table", "row", "metric", "unit", "measured", "predicted", "80 % from", "to", "error"},
              .rows = {},
              .wrap = true};
  for (const PublishedResult& r : results) {
    if (!r.why_not.empty()) continue;
    const auto value = [&](bool there, double v) {
      return there ? number_cell(figure(r, v), plain_number(v)) : number_cell("-", "null");
    };
    table.rows.push_back({cell(r.table), cell(r.name), cell(r.metric), cell(r.unit), value(true, r.measured),
                          value(true, r.predicted), value(r.high > 0, r.low), value(r.high > 0, r.high),
                          percent(true, r.error())});
  }
  return table;
}

// How many are not predicted, by table and reason, in order of appearance.
Table refused_table(const std::vector<PublishedResult>& results) {
  Table table{.name = "not_predicted",
              .title = "What is not predicted, and why",
              .columns = {"table", "metric", "reason", "rows"},
              .headings = {},
              .rows = {},
              .wrap = true};
  std::vector<std::pair<const PublishedResult*, std::size_t>> kinds;
  for (const PublishedResult& r : results) {
    if (r.why_not.empty()) continue;
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) {
      return kind.first->table == r.table && kind.first->metric == r.metric && kind.first->why_not == r.why_not;
    });
    if (same == kinds.end())
      kinds.emplace_back(&r, 1);
    else
      ++same->second;
  }
  for (const auto& [first, count] : kinds)
    table.rows.push_back({cell(first->table), cell(first->metric), cell(first->why_not),
                          number_cell(fmt::to_string(count), fmt::to_string(count))});
  return table;
}

Table ablation_table(const std::vector<PublishedResult>& results) {
  Table table{.name = "ablation",
              .title = "What each step changes against the one before it",
              .columns = {"table", "step", "metric", "measured", "predicted", "same_direction"},
              .headings = {"table", "step", "metric", "measured", "predicted", "same direction"},
              .rows = {},
              .wrap = true};
  for (const AblationStep& step : ablation(results))
    table.rows.push_back({cell(step.table), cell(step.name), cell(step.metric), percent(true, step.measured),
                          percent(true, step.predicted), cell(step.same_direction() ? "yes" : "no")});
  return table;
}

}  // namespace

std::vector<Table> published_tables(const std::vector<PublishedResult>& results) {
  return {errors_table(results), rows_table(results), ablation_table(results), refused_table(results)};
}

}  // namespace memwall
