#include "cli/print/tried_table.h"

#include <fmt/format.h>

#include <string>

#include "cli/print/table_cells.h"

namespace memwall {
namespace {

// Then a shorter step is no gain by itself.
const char* what_else_changes(const std::string& options) {
  if (options.find("batch:") != std::string::npos) return " (fewer samples)";
  return options.find("zero:") != std::string::npos ? " (8 GPUs)" : "";
}

}  // namespace

Table tried_table(const RunSummary& s) {
  Table t{.name = "tried",
          .title = "What may make it fit, each simulated beside all that was asked for",
          .columns = {"options", "fits", "peak_reserved_bytes", "missing_bytes", "missing_in", "step_time_s", "change",
                      "samples_per_s"},
          .headings = {"add", "fits", "reserved", "missing", "in", "step time", "against now", "samples/s"},
          .rows = {},
          .wrap = true};
  for (const TriedChange& change : s.tried) {
    const double ratio = to_seconds(s.step_time) > 0 ? to_seconds(change.step_time) / to_seconds(s.step_time) - 1 : 0;
    t.rows.push_back(
        {cell(change.options), cell(change.fits ? "yes" : "no"), bytes_cell(change.peak_reserved),
         bytes_cell(change.missing), cell(change.missing_in), time_cell(change.step_time),
         cell(fmt::format("{:+.1f} %{}", 100 * ratio, what_else_changes(change.options)), plain_number(ratio)),
         change.samples_per_second > 0
             ? number_cell(fmt::format("{:.4g}", change.samples_per_second), plain_number(change.samples_per_second))
             : number_cell("-", "0")});
  }
  return t;
}

}  // namespace memwall
