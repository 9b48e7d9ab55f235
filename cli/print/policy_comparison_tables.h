// Policies side by side as tables, as JSON and as a drawing.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "study/policy_comparison.h"
#include "traces/figure/budget_time_figure.h"

namespace memwall {

// The answer first: at each budget the fastest that fits, and how far it is from the bound. `for_people`: with the
// times in one table of policies by budgets, which programs find in the cells.
std::vector<Table> policy_comparison_tables(const PolicyComparison& comparison, bool for_people);

// Every cell in a row, with the bound of its budget.
Table policy_cell_table(const PolicyComparison& comparison);

// The fields are described in docs/planning.md.
std::string policy_comparison_json(const PolicyComparison& comparison);

BudgetTimeChart policy_comparison_chart(const PolicyComparison& comparison);

}  // namespace memwall
