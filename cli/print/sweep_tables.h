// The points of a study as tables, CSV, NDJSON and JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "study/sweep/sweep.h"

namespace memwall {

// The answer first: which point is best, how many ran, what failed; then the points, best first where there is an
// objective. `fields`: columns beside the axes, by their names or short names. `title`: the question; "" = none.
std::vector<Table> sweep_tables(const SweepResult& result, const std::vector<std::string>& fields,
                                const std::string& title = "");

// Points by their index: best first where there is an objective, what meets the conditions before what ran, then what
// failed.
std::vector<std::size_t> order_of(const SweepResult& result);

// A row per point, in their order: number, axes, whether it meets the conditions, the objective, one column per field
// that any point has, its scenario and, where it failed, the sentence.
std::string sweep_csv(const SweepResult& result);

// The same, an object per line: `point`, `axes`, `meets`, `objective`, `fields`, `scenario`, `error`.
std::string sweep_ndjson(const SweepResult& result);

// One object: `schema`, `axes`, `fields[]` with their units, `best`, `failures[]`, `points[]` as in NDJSON.
std::string sweep_json(const SweepResult& result);

// A field by its name or short name: "12.3 ms", "yes", "-" where it is not known.
Cell field_cell(const PointRecord& record, const std::string& name);
// What stands above a column on the screen: the column's name, and of "peak", which is another figure in other tables,
// "peak reserved".
std::string field_heading(const std::string& name);

// "policy=offload, pcie=32GB/s": the axes of a point that apply.
std::string point_text(const SweepResult& result, const SweepPoint& point);

// A value with its unit for people: "12.3 ms", "39.34 GB".
std::string value_text(double value, FieldUnit unit);

}  // namespace memwall
