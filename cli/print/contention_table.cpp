#include "cli/print/contention_table.h"

#include <fmt/format.h>

#include "cli/print/table_cells.h"

namespace memwall {

Table contention_table(const std::vector<ContendedRate>& rates) {
  Table table{.name = "contention",
              .title = "Processes at the same time: bytes per second of all together, and of one that is alone",
              .columns = {"benchmark", "parameters", "processes", "alone_bytes_per_s", "measured_bytes_per_s",
                          "predicted_bytes_per_s", "error", "measured_spread"},
              .headings = {"benchmark", "parameters", "processes", "alone", "measured", "predicted", "error", "spread"},
              .rows = {}};
  const auto rate_cell = [](double rate) { return number_cell(human_rate(rate), plain_number(rate)); };
  for (const ContendedRate& rate : rates) {
    const double error = rate.predicted / rate.measured - 1;
    table.rows.push_back({cell(rate.benchmark), cell(rate.parameters.empty() ? "-" : rate.parameters),
                          number_cell(std::to_string(rate.processes), std::to_string(rate.processes)),
                          rate_cell(rate.alone), rate_cell(rate.measured), rate_cell(rate.predicted),
                          number_cell(fmt::format("{:+.1f} %", error * 100), plain_number(error)),
                          number_cell(fmt::format("{:.0f} %", rate.spread * 100), plain_number(rate.spread))});
  }
  return table;
}

}  // namespace memwall
