#include <fmt/format.h>

#include "cli/print/machine_tables.h"
#include "cli/print/table_cells.h"

namespace memwall {
namespace {

constexpr double kUsual = 0.05;

Cell measured_cell(const ComponentPoint& point, double value) {
  const std::string text = point.unit == "s"     ? human_time(from_seconds(value))
                           : point.unit == "B/s" ? human_rate(value)
                                                 : fmt::format("{:.4g} TFLOP/s", value / 1e12);
  return number_cell(text, plain_number(value));
}

std::string verdict(const ComponentCheck& c) {
  if (c.rows.held_out) return "held out";
  if (!c.within()) return "outside";
  return c.median <= kUsual ? "within" : "listed";
}

}  // namespace

std::vector<Table> machine_check_tables(const std::vector<MachineCheck>& checks) {
  Table t{.name = "residuals",
          .title =
              "How far machine files are from the published rows that they were fitted to (|predicted / measured - 1|)",
          .columns = {"machine", "component", "points", "median", "p90", "worst", "verdict", "worst_point"},
          .headings = {"machine", "component", "points", "median", "p90", "worst", "", "worst at"},
          .rows = {},
          .wrap = true};
  Table why{.name = "reasons",
            .title = "Where more than 5 % is accepted, and why",
            .columns = {"sentence"},
            .headings = {},
            .rows = {},
            .prose = true};
  for (const MachineCheck& check : checks) {
    for (const ComponentCheck& c : check.components) {
      const ComponentPoint& worst = c.points[c.worst];
      t.rows.push_back({cell(check.machine), cell(c.rows.name), count_cell(c.points.size()), share_cell(c.median),
                        share_cell(c.p90), share_cell(worst.residual()), cell(verdict(c)), cell(worst.what)});
      if (verdict(c) == "listed")
        why.rows.push_back({cell(fmt::format("{}, {}: median {}, accepted {}: {}.", check.machine, c.rows.name,
                                             percent_text(c.median), percent_text(c.rows.limit), c.rows.reason))});
    }
  }
  std::vector<Table> tables{std::move(t)};
  if (!why.rows.empty()) tables.push_back(std::move(why));
  return tables;
}

Table machine_point_table(const std::vector<MachineCheck>& checks) {
  Table t{.name = "points",
          .title = "",
          .columns = {"machine", "component", "point", "measured", "predicted", "residual"},
          .headings = {},
          .rows = {},
          .wrap = true};
  for (const MachineCheck& check : checks)
    for (const ComponentCheck& c : check.components)
      for (const ComponentPoint& p : c.points)
        t.rows.push_back({cell(check.machine), cell(c.rows.name), cell(p.what), measured_cell(p, p.measured),
                          measured_cell(p, p.predicted), share_cell(p.residual())});
  return t;
}

}  // namespace memwall
