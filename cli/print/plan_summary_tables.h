// One memory plan: what it is for, what it decides, what is expected of it, and what of it a program can execute.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "traces/plan/plan_document.h"

namespace memwall {

// `name`: of the file.
std::vector<Table> plan_summary_tables(const PlanDocument& document, const std::string& name);

}  // namespace memwall
