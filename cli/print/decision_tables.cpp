#include "cli/print/decision_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "cli/print/numbered_modules.h"
#include "cli/print/table_cells.h"

namespace memwall {
namespace {

constexpr std::size_t kModulesShown = 3;

struct ModuleRow {
  ModuleDecisions decided;
  std::size_t modules = 0;
};

std::vector<ModuleRow> grouped(const std::vector<ModuleDecisions>& modules) {
  std::vector<ModuleRow> rows;
  std::map<std::string, std::size_t> places;
  for (const ModuleDecisions& module : modules) {
    const auto [place, first] = places.try_emplace(without_numbers(module.module), rows.size());
    if (first) rows.push_back({});
    ModuleRow& row = rows[place->second];
    row.decided = MemoryDecisions{{}, {}, {}, {row.decided, module}}.total();
    row.decided.module = ++row.modules == 1 ? module.module : place->first;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ModuleRow& a, const ModuleRow& b) {
    return std::pair(a.decided.moved(), a.decided.rerun_time) > std::pair(b.decided.moved(), b.decided.rerun_time);
  });
  return rows;
}

std::string title_of(const RunSummary& s, const ModuleDecisions& all) {
  std::vector<std::string> parts;
  if (all.copied_out + all.copied_in > 0)
    parts.push_back(fmt::format("{} copied out, {} back", human_bytes(all.copied_out), human_bytes(all.copied_in)));
  if (all.made_again > 0) parts.push_back(fmt::format("{} made again", human_bytes(all.made_again)));
  if (all.rerun_ops > 0)
    parts.push_back(fmt::format("{} run again for {}", counted_text(all.rerun_ops, "op"), human_time(all.rerun_time)));
  if (all.fetches > 0) parts.push_back(fmt::format("{} of {} fetches late", all.late, all.fetches));
  if (s.step_count > 1) parts.push_back(fmt::format("all {} steps", s.step_count));
  return fmt::format("What leaves the GPU's memory and comes back, by module ({})", fmt::join(parts, "; "));
}

Cell bytes_or_nothing(Bytes bytes) {
  Cell shown = bytes_cell(bytes);
  if (bytes == 0) shown.text = "";
  return shown;
}

Table module_table(const char* name, std::string title, const ModuleDecisions& all) {
  Table t{.name = name,
          .title = std::move(title),
          .columns = {"module", "modules", "storages"},
          .headings = {"", "modules", "storages"},
          .rows = {}};
  if (all.copied_out + all.copied_in > 0) {
    for (const char* column : {"copied_out_bytes", "copied_in_bytes", "fetches", "late", "slack_s"})
      t.columns.emplace_back(column);
    for (const char* heading : {"copied out", "back", "fetches", "late", "least slack"})
      t.headings.emplace_back(heading);
  }
  if (all.rerun_ops > 0) {
    for (const char* column : {"made_again_bytes", "rerun_ops", "rerun_time_s"}) t.columns.emplace_back(column);
    for (const char* heading : {"made again", "ops", "run again"}) t.headings.emplace_back(heading);
  }
  return t;
}

void add_row(Table& t, const ModuleRow& row, const ModuleDecisions& all) {
  const ModuleDecisions& d = row.decided;
  std::vector<Cell> cells{cell(d.module.empty() ? "outside of modules" : d.module, d.module), count_cell(row.modules),
                          count_cell(d.storages)};
  if (all.copied_out + all.copied_in > 0) {
    cells.push_back(bytes_or_nothing(d.copied_out));
    cells.push_back(bytes_or_nothing(d.copied_in));
    cells.push_back(count_cell(d.fetches));
    cells.push_back(count_cell(d.late));
    cells.push_back(d.slack ? time_cell(*d.slack) : number_cell("", ""));
  }
  if (all.rerun_ops > 0) {
    cells.push_back(bytes_or_nothing(d.made_again));
    cells.push_back(count_cell(d.rerun_ops));
    cells.push_back(d.rerun_ops > 0 ? time_cell(d.rerun_time) : number_cell("", "0"));
  }
  t.rows.push_back(std::move(cells));
}

}  // namespace

std::vector<Table> decision_tables(const RunSummary& s) {
  const ModuleDecisions all = s.decisions.total();
  Table together = module_table("decisions", title_of(s, all), all);
  together.screen_rows = kModulesShown;
  for (const ModuleRow& row : grouped(s.decisions.modules)) add_row(together, row, all);
  Table alone = module_table("decisions_by_module",
                             "The same, module by module (late: its use waited for the fetch; slack: how long before "
                             "its use a fetch had arrived)",
                             all);
  alone.detail = true;
  if (together.rows.size() < s.decisions.modules.size())
    for (const ModuleDecisions& module : s.decisions.modules) add_row(alone, {module, 1}, all);
  return {std::move(together), std::move(alone)};
}

}  // namespace memwall
