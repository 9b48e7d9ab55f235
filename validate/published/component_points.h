// One function per kind of measurement: rows of a table beside what a machine says of each. Internal to
// validate/published.
#pragma once

#include <vector>

#include "validate/published/components.h"
#include "validate/published/csv_table.h"

namespace memwall {

// Columns as the table of each kind has them. Throws InputError where one is missing or its text no number, UsageError
// where the machine lacks what is asked for (a route, a fabric).
std::vector<ComponentPoint> component_points(const Machine& machine, const ComponentRows& rows,
                                             const std::vector<CsvTableRow>& table);

}  // namespace memwall
