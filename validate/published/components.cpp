#include "validate/published/components.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/hw/kernel_cost.h"
#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "sim/quantile.h"
#include "validate/published/component_points.h"

namespace memwall {
namespace {

bool holds(const CsvTableRow& row, const ComponentRows& rows) {
  return std::all_of(rows.where.begin(), rows.where.end(),
                     [&](const auto& condition) { return row.text(condition.first) == condition.second; });
}

std::vector<CsvTableRow> chosen(const ComponentRows& rows, const std::filesystem::path& folder) {
  std::size_t damaged = 0;  // two rows of one table hold an unquoted comma
  std::vector<CsvTableRow> found, kept;
  for (const CsvTableRow& row : read_csv_table(folder / rows.table, &damaged))
    if (holds(row, rows)) found.push_back(row);
  for (std::size_t i = rows.first; i < found.size(); i += rows.every) kept.push_back(found[i]);
  return kept;
}

void summarize(ComponentCheck& check) {
  std::vector<double> residuals;
  for (const ComponentPoint& point : check.points) residuals.push_back(point.residual());
  check.worst = static_cast<std::size_t>(std::max_element(residuals.begin(), residuals.end()) - residuals.begin());
  check.median = median(residuals);
  check.p90 = lower_quantile(residuals, 0.9);
}

}  // namespace

double ComponentPoint::residual() const { return std::abs(predicted / measured - 1); }

ComponentCheck check_component(const Machine& machine, const ComponentRows& rows, const std::filesystem::path& folder) {
  ComponentCheck check{.rows = rows, .points = component_points(machine, rows, chosen(rows, folder))};
  if (check.points.empty())
    throw InputError(fmt::format(
        "{}: calibration.{} of machine {} finds no row; expected rows in which {}.", rows.table, rows.name,
        machine.name, rows.where.empty() ? "any" : rows.where.front().first + "=" + rows.where.front().second));
  summarize(check);
  return check;
}

std::vector<ComponentCheck> check_components(const std::string& machine, const std::filesystem::path& folder) {
  const Machine loaded = in_short_runs(load_machine(machine));
  std::vector<ComponentCheck> checks;
  for (const ComponentRows& rows : component_rows(machine)) checks.push_back(check_component(loaded, rows, folder));
  return checks;
}

}  // namespace memwall
