#include "cli/print/transfer_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/print/table_cells.h"
#include "models/hw/transfer_errors.h"

namespace memwall {
namespace {

constexpr std::size_t kWorst = 3;  // rows shown of each kind
constexpr double kLeastCoverage = 0.85, kMostCoverage = 0.95;

Cell count(std::size_t n) { return number_cell(fmt::to_string(n), fmt::to_string(n)); }
Cell signed_percent(double share) { return number_cell(fmt::format("{:+.1f} %", 100 * share), plain_number(share)); }

std::string verdict(const TransferSummary& s) {
  if (s.held_out == 0) return "no row held out";
  if (s.coverage < kLeastCoverage) return "too narrow";
  return s.coverage > kMostCoverage ? "wide" : "as stated";
}

Table summary_table(const std::vector<TransferResult>& results) {
  Table table{.name = "transfer",
              .title = "Error of transferred durations, by kind of work",
              .columns = {"kind", "rows", "median_error", "p90_error", "bias", "p90_where_fitted", "interval",
                          "held_out", "coverage", "verdict", "bandwidth_ratio_median", "peak_ratio_median"},
              .headings = {"kind", "rows", "median error", "p90 error", "bias", "p90 where fitted", "90 % interval",
                           "held out", "of them inside", "interval is", "by bandwidth alone", "by peak rate alone"},
              .rows = {},
              .wrap = true};
  for (const TransferSummary& s : summarize_transfer(results))
    table.rows.push_back({cell(s.kind), count(s.rows), share_cell(s.median), share_cell(s.p90), signed_percent(s.bias),
                          share_cell(s.fitted_p90),
                          number_cell(fmt::format("+-{:.0f} %", 100 * s.band), plain_number(s.band)), count(s.held_out),
                          share_cell(s.coverage), cell(verdict(s)), share_cell(s.bandwidth_median),
                          share_cell(s.peak_median)});
  return table;
}

// A step is made of 80 % of its parts' errors; and its products are priced as in jobs of hours, which its interval has
// to hold for benchmarks, too.
Table steps_table(const std::vector<TransferResult>& results, const std::vector<TransferResult>& in_jobs) {
  Table table{
      .name = "intervals_of_steps",
      .title = "The same as the 80 % that steps are made of, with products priced as in short runs, and as in jobs",
      .columns = {"kind", "held_out", "coverage", "half_width", "jobs_median_error", "jobs_coverage",
                  "jobs_half_width"},
      .headings = {"kind", "held out", "of them inside", "median half-width", "as in jobs: median error",
                   "of them inside", "median half-width"},
      .rows = {},
      .wrap = true};
  const std::vector<TransferSummary> jobs = summarize_transfer(in_jobs), runs = summarize_transfer(results);
  for (std::size_t i = 0; i < runs.size(); ++i)
    table.rows.push_back({cell(runs[i].kind), count(runs[i].held_out), share_cell(runs[i].coverage_80),
                          share_cell(runs[i].half_width_80), share_cell(jobs[i].median),
                          share_cell(jobs[i].coverage_80), share_cell(jobs[i].half_width_80)});
  return table;
}

// How many rows each table gave, and whether machine files were fitted to them.
Table sources_table(const std::vector<TransferResult>& results) {
  Table table{.name = "sources",
              .title = "Where the rows come from",
              .columns = {"table", "kind", "rows", "machine_files_fitted_to_them"},
              .headings = {"table", "kind", "rows", "machine files are fitted to them"},
              .rows = {},
              .wrap = true};
  std::map<std::pair<std::string, std::string>, std::pair<std::size_t, std::size_t>> counts;
  for (const TransferResult& r : results) {
    auto& [rows, calibrated] = counts[{r.row.table, r.row.kind}];
    ++rows;
    calibrated += r.row.calibrated;
  }
  for (const auto& [key, value] : counts)
    table.rows.push_back({cell(key.first), cell(key.second), count(value.first), count(value.second)});
  return table;
}

Table worst_table(const std::vector<TransferResult>& results) {
  Table table{
      .name = "worst",
      .title = "The worst rows of each kind",
      .columns = {"kind", "row", "from", "to", "measured_there", "measured_here", "predicted", "error", "interval"},
      .headings = {"kind", "row", "from", "to", "measured there", "measured here", "predicted", "error",
                   "90 % interval"},
      .rows = {},
      .wrap = true};
  std::vector<const TransferResult*> sorted;
  for (const TransferResult& r : results) sorted.push_back(&r);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](auto* a, auto* b) { return std::abs(a->error()) > std::abs(b->error()); });
  for (const TransferSummary& s : summarize_transfer(results)) {
    std::size_t shown = 0;
    for (const TransferResult* r : sorted) {
      if (r->row.kind != s.kind || shown++ >= kWorst) continue;
      table.rows.push_back({cell(r->row.kind), cell(r->row.name), cell(r->row.from), cell(r->row.to),
                            time_cell(r->row.measured_from), time_cell(r->row.measured_to), time_cell(r->predicted),
                            signed_percent(r->error()),
                            number_cell(fmt::format("+-{:.0f} %", 100 * r->error_band), plain_number(r->error_band))});
    }
  }
  return table;
}

Table stated_table() {
  Table table{.name = "stated",
              .title = "The errors that are stated, between machines a factor of two or more apart",
              .columns = {"rule", "operator_class", "error", "source"},
              .headings = {"transferred by", "operator class", "90 % within", "where it comes from"},
              .rows = {},
              .wrap = true};
  for (const TransferError& e : transfer_errors()) {
    const bool kernels =
        e.rule == TransferRule::work || e.rule == TransferRule::bandwidth || e.rule == TransferRule::between;
    table.rows.push_back({cell(std::string(to_string(e.rule))),
                          cell(kernels ? std::string(to_string(e.operator_class)) : std::string("all")),
                          number_cell(fmt::format("+-{:.0f} %", 100 * e.error), plain_number(e.error)),
                          cell(std::string(e.source))});
  }
  return table;
}

}  // namespace

std::vector<Table> transfer_tables(const std::vector<TransferResult>& results,
                                   const std::vector<TransferResult>& in_jobs) {
  return {summary_table(results), steps_table(results, in_jobs), sources_table(results), worst_table(results),
          stated_table()};
}

}  // namespace memwall
