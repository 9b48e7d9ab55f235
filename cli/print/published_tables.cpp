#include "cli/print/published_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/print/table_cells.h"
#include "validate/published/capacity_pairs.h"
#include "validate/published/interval_coverage.h"
#include "validate/published/judged_tables.h"

namespace memwall {
namespace {

std::string figure(const PublishedResult& r, double value) {
  if (r.metric == "fits") return value != 0 ? "fits" : "does not fit";
  if (r.unit == "FLOP/s") return fmt::format("{:.1f} TFLOP/s", value / 1e12);
  return r.unit == "s" ? human_time(from_seconds(value)) : human_bytes(static_cast<Bytes>(std::llround(value)));
}

Cell percent(bool known, double share) {
  return known ? number_cell(fmt::format("{:+.1f} %", share * 100), plain_number(share)) : number_cell("-", "null");
}

Cell unsigned_percent(bool known, double share) { return known ? share_cell(share) : number_cell("-", "null"); }

const char* half_name(Half half) { return half == Half::none ? "-" : half == Half::fitted ? "fitted" : "judged"; }

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
                          unsigned_percent(e.aim > 0, e.aim),
                          number_cell(fmt::to_string(e.not_predicted), fmt::to_string(e.not_predicted))});
  return table;
}

// Rows of which nothing is said but that the job fits, as it did, are left out.
bool is_told(const PublishedResult& r) {
  return r.why_not.empty() && (r.metric != "fits" || r.measured == 0 || r.predicted == 0);
}

Table rows_table(const std::vector<PublishedResult>& results) {
  Table table{.name = "published",
              .title = "Every row that is predicted",
              .columns = {"table", "half", "row", "metric", "unit", "measured", "predicted", "low", "high", "error",
                          "null_error", "unfitted", "unfitted_low", "unfitted_high"},
              .headings = {"table", "half", "row", "metric", "unit", "measured", "predicted", "80 % from", "to",
                           "error", "error of the null", "with no constant", "80 % from", "to"},
              .rows = {},
              .wrap = true};
  const std::vector<std::optional<double>> null = null_seconds(results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const PublishedResult& r = results[i];
    if (!is_told(r)) continue;
    const auto value = [&](bool there, double v) {
      return there ? number_cell(figure(r, v), plain_number(v)) : number_cell("-", "null");
    };
    const bool number = r.metric != "fits" && r.metric != "rate";
    table.rows.push_back({cell(r.table), cell(half_name(r.half)), cell(r.name), cell(r.metric), cell(r.unit),
                          value(true, r.measured), value(true, r.predicted), value(r.high > 0, r.low),
                          value(r.high > 0, r.high), percent(number, number ? r.error() : 0),
                          percent(null[i].has_value(), null[i].value_or(0) / r.measured - 1),
                          value(r.unfitted.predicted > 0, r.unfitted.predicted),
                          value(r.unfitted.high > 0, r.unfitted.low), value(r.unfitted.high > 0, r.unfitted.high)});
  }
  return table;
}

Cell plain_cell(bool known, double value) {
  return known ? number_cell(fmt::format("{:.3f}", value), plain_number(value)) : number_cell("-", "null");
}

Table judged_table(const std::vector<PublishedResult>& results) {
  Table table{.name = "judged",
              .title =
                  "Error of step times: constants fitted to the first half of each "
                  "table's rows, judged by the second",
              .columns = {"table", "half", "rows", "median_error", "p90_error", "null_median_error", "order",
                          "not_predicted", "memory_right", "memory_told"},
              .headings = {"table", "half", "rows", "median error", "p90 error", "median error of the null",
                           "rank correlation", "not predicted", "fits or not: right", "of"},
              .rows = {},
              .wrap = true};
  const auto count = [](std::size_t n) { return number_cell(fmt::to_string(n), fmt::to_string(n)); };
  const auto nothing = [] { return number_cell("-", "null"); };
  for (const JudgedTable& t : judged_tables(results)) {
    const auto add = [&](const char* half, const JudgedErrors& e, const std::optional<double>& order, bool last) {
      table.rows.push_back({cell(t.table), cell(half), count(e.rows), unsigned_percent(e.rows > 0, e.median),
                            unsigned_percent(e.rows > 0, e.p90),
                            unsigned_percent(e.null_median.has_value(), e.null_median.value_or(0)),
                            plain_cell(order.has_value(), order.value_or(0)), last ? count(t.not_predicted) : nothing(),
                            last ? count(t.fits_right) : nothing(), last ? count(t.fits_told) : nothing()});
    };
    if (t.fitted.rows > 0) add("fitted", t.fitted, std::nullopt, false);
    add(t.protocol == Protocol::order ? "order" : "judged", t.judged, t.order, true);
  }
  return table;
}

Cell fitted_rows_cell(std::size_t n) { return number_cell(fmt::to_string(n), fmt::to_string(n)); }

Table constants_table(const std::vector<PublishedResult>& results) {
  Table table{
      .name = "constants",
      .title = "What was fitted: multiples of what machine file and cost model say",
      .columns = {"table", "gpu", "fitted_rows", "products", "network", "host"},
      .headings = {"table", "GPU", "fitted rows", "time of products", "bandwidth of collectives", "time of the host"},
      .rows = {},
      .wrap = true};
  for (const JudgedTable& t : judged_tables(results))
    for (const FittedGpu& one : t.constants)
      table.rows.push_back({cell(t.table), cell(one.gpu), fitted_rows_cell(one.rows),
                            plain_cell(true, one.constants.products), plain_cell(true, one.constants.network),
                            plain_cell(true, one.constants.host)});
  return table;
}

Cell count_cell(std::size_t n) { return number_cell(fmt::to_string(n), fmt::to_string(n)); }

// Of step times to which nothing was fitted: with no constant, as whoever asks of a job of his own has it, or with
// those that are fitted to other rows of the job's table.
Table coverage_table(const std::vector<PublishedResult>& results, CoverageOf which) {
  const bool unfitted = which == CoverageOf::unfitted;
  Table table{
      .name = unfitted ? "coverage" : "coverage_fitted",
      .title = unfitted ? "What the 80 % intervals hold without any constant, over step times to which nothing "
                          "was fitted"
                        : "What they hold of the same step times with the constants of their tables",
      .columns = {"job", "rows", "inside", "half_width", "calibrating", "inside_held_out", "shorter", "longer",
                  "shorter_by_rows", "longer_by_rows"},
      .headings = {"kind of job", "rows", "truths inside", "median half-width",
                   unfitted ? "rows that calibrate" : "rows with constants", "of these inside, by the other tables",
                   "program's deviation, shorter", "longer", "conformal over these rows, shorter", "longer"},
      .rows = {},
      .wrap = true};
  for (const IntervalCoverage& c : interval_coverage(results, which)) {
    const ProgramDeviation program = !c.job     ? ProgramDeviation{}
                                     : unfitted ? program_deviation(*c.job)
                                                : fitted_program_deviation(*c.job);
    table.rows.push_back({cell(c.job ? std::string(to_string(*c.job)) : "all"), count_cell(c.rows),
                          share_cell(c.inside), share_cell(c.half_width), count_cell(c.calibrating),
                          unsigned_percent(c.inside_held_out.has_value(), c.inside_held_out.value_or(0)),
                          plain_cell(c.job.has_value(), program.shorter), plain_cell(c.job.has_value(), program.longer),
                          plain_cell(c.job.has_value(), c.deviation.shorter),
                          plain_cell(c.job.has_value(), c.deviation.longer)});
  }
  return table;
}

Table host_table(const std::vector<PublishedResult>& results) {
  Table table{.name = "host",
              .title = "The time of the host: steps half of whose critical path is its, without any constant",
              .columns = {"rows", "inside", "shorter", "longer", "shorter_by_rows", "longer_by_rows"},
              .headings = {"rows", "truths inside", "host's deviation, shorter", "longer",
                           "conformal over these rows, shorter", "longer"},
              .rows = {},
              .wrap = true};
  const HostCoverage c = host_coverage(results);
  if (c.rows > 0)
    table.rows.push_back({count_cell(c.rows), share_cell(c.inside), plain_cell(true, host_deviation().shorter),
                          plain_cell(true, host_deviation().longer), plain_cell(true, c.deviation.shorter),
                          plain_cell(true, c.deviation.longer)});
  return table;
}

Table carried_table(const std::vector<PublishedResult>& results) {
  Table table{.name = "carried",
              .title = "Steps carried from one kind of GPU to another: pairs of rows of one job",
              .columns = {"pairs", "median_error", "inside", "deviation", "deviation_by_rows"},
              .headings = {"pairs", "median error", "within 80 % of the program's part alone", "program's deviation",
                           "conformal over these pairs"},
              .rows = {},
              .wrap = true};
  const CarriedCoverage c = carried_coverage(results);
  if (c.pairs > 0)
    table.rows.push_back({number_cell(fmt::to_string(c.pairs), fmt::to_string(c.pairs)), share_cell(c.median),
                          share_cell(c.inside), plain_cell(true, carried_deviation()), plain_cell(true, c.deviation)});
  return table;
}

Table capacity_table(const std::vector<PublishedResult>& results) {
  Table table{.name = "capacity",
              .title = "Fits or not: memories of which the measured peak takes all but 5 %, and that it exceeds by 5 %",
              .columns = {"table", "rows", "fit_recall", "no_fit_recall"},
              .headings = {"table", "memories of either kind", "fits: told", "does not fit: told"},
              .rows = {},
              .wrap = true};
  for (const CapacityPairs& pairs : capacity_pairs(results))
    table.rows.push_back({cell(pairs.table.empty() ? "all" : pairs.table),
                          number_cell(fmt::to_string(pairs.rows), fmt::to_string(pairs.rows)),
                          share_cell(pairs.fit_recall()), share_cell(pairs.no_fit_recall())});
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
  return {errors_table(results),    judged_table(results),
          constants_table(results), coverage_table(results, CoverageOf::unfitted),
          host_table(results),      coverage_table(results, CoverageOf::fitted),
          carried_table(results),   capacity_table(results),
          rows_table(results),      ablation_table(results),
          refused_table(results)};
}

Table fitted_table(const std::vector<FittedRows>& fitted) {
  Table table{
      .name = "fit",
      .title = "Constants fitted to the first half of each table's rows",
      .columns = {"table", "gpu", "rows", "products", "network", "host", "error_before", "error"},
      .headings = {"table", "GPU", "rows", "products", "network", "host", "mean |ln|, all 1", "mean |ln|, fitted"},
      .rows = {},
      .wrap = true};
  for (const FittedRows& one : fitted)
    table.rows.push_back({cell(one.table), cell(one.gpu), fitted_rows_cell(one.fit.rows),
                          plain_cell(true, one.fit.constants.products), plain_cell(true, one.fit.constants.network),
                          plain_cell(true, one.fit.constants.host), plain_cell(true, one.fit.before),
                          plain_cell(true, one.fit.error)});
  return table;
}

}  // namespace memwall
