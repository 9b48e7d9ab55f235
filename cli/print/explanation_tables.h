// A scenario explained, as tables: the answer in sentences first. docs/explain.md has their columns.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "study/explain/explanation.h"

namespace memwall {

// `beside`: tables that stand behind that of the step's time.
std::vector<Table> explanation_tables(const Explanation& explanation, const std::vector<Table>& beside = {});

// One object: `scenario` as its line, `step`, `machine`, `share`, `fits`, `step_time_s`, `peak_reserved_bytes`,
// `peak_allocated_bytes`, then the tables.
std::string explanation_json(const Explanation& explanation, const std::vector<Table>& beside = {});

// What stands first: what binds, what binds next, what one unit more is worth, what each policy costs.
std::vector<std::string> explanation_sentences(const Explanation& explanation);

// A part of a critical path for a sentence: "the GPU's kernels". `reason`: as to_string(TimeClass).
std::string reason_words(const std::string& reason);

// "1555 GB/s".
std::string amount_text(double value, const std::string& unit);

}  // namespace memwall
