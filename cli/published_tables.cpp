#include "cli/published_tables.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/format.h"

namespace memwall {
namespace {

std::string figure(const PublishedResult& r, double value) {
  return r.unit == "s" ? human_time(from_seconds(value)) : human_bytes(static_cast<Bytes>(std::llround(value)));
}

Cell percent(bool known, double share) {
  return known ? number_cell(fmt::format("{:+.1f} %", share * 100), plain_number(share)) : number_cell("-", "null");
}

Cell unsigned_percent(bool known, double share) {
  return known ? number_cell(fmt::format("{:.1f} %", share * 100), plain_number(share)) : number_cell("-", "null");
}

Table errors_table(const std::vector<PublishedResult>& results) {
  Table table{
      .name = "errors",
      .title = "Error of predictions against published measurements, by table",
      .columns = {"table", "metric", "rows", "median_error", "p90_error", "aim_of_the_median", "not_predicted"},
      .headings = {"table", "metric", "rows", "median error", "p90 error", "aim of the median", "not predicted"},
      .rows = {}};
  for (const PublishedErrors& e : published_errors(results))
    table.rows.push_back({cell(e.table), cell(e.metric), number_cell(fmt::to_string(e.rows), fmt::to_string(e.rows)),
                          unsigned_percent(e.rows > 0, e.median), unsigned_percent(e.rows > 0, e.p90),
                          unsigned_percent(true, e.aim),
                          number_cell(fmt::to_string(e.not_predicted), fmt::to_string(e.not_predicted))});
  return table;
}

Table rows_table(const std::vector<PublishedResult>& results) {
  Table table{.name = "published",
              .title = "Every row",
              .columns = {"table", "row", "metric", "unit", "measured", "predicted", "low", "high", "error", "remark"},
              .headings = {"table", "row", "metric", "unit", "measured", "predicted", "80 % from", "to", "error",
                           "not predicted because"},
              .rows = {}};
  for (const PublishedResult& r : results) {
    const bool known = r.why_not.empty();
    const auto value = [&](bool there, double v) {
      return there ? number_cell(figure(r, v), plain_number(v)) : number_cell("-", "null");
    };
    table.rows.push_back({cell(r.table), cell(r.name), cell(r.metric), cell(r.unit), value(true, r.measured),
                          value(known, r.predicted), value(known && r.high > 0, r.low),
                          value(known && r.high > 0, r.high), percent(known, known ? r.error() : 0), cell(r.why_not)});
  }
  return table;
}

Table ladder_table(const std::vector<PublishedResult>& results) {
  Table table{.name = "ladder",
              .title = "What each rung changes against the one before it",
              .columns = {"table", "rung", "metric", "measured", "predicted", "same_direction"},
              .headings = {"table", "rung", "metric", "measured", "predicted", "same direction"},
              .rows = {}};
  for (const LadderRung& rung : ladder(results))
    table.rows.push_back({cell(rung.table), cell(rung.name), cell(rung.metric), percent(true, rung.measured),
                          percent(true, rung.predicted), cell(rung.same_direction() ? "yes" : "no")});
  return table;
}

}  // namespace

std::vector<Table> published_tables(const std::vector<PublishedResult>& results) {
  return {errors_table(results), rows_table(results), ladder_table(results)};
}

}  // namespace memwall
