// Energy and price of a step, as tables.
#pragma once

#include "cli/print/table.h"
#include "traces/run/analysis/compare.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// Rows of the overview: energy and price of a step, or which figure of the machine file is missing.
void add_energy_price_rows(const RunSummary& summary, Table& overview);
// What a training run takes; without rows where nobody asked.
Table training_table(const RunSummary& summary);

// What the energy of a step is made of; no rows where it is not known.
Table energy_table(const RunSummary& summary);

// What the memory that a step fills would cost to buy, of tiers with a price; no rows where there is none.
Table capacity_price_table(const RunSummary& summary);

// No rows where neither run knows energy or price.
Table energy_price_differences(const Comparison& comparison);

}  // namespace memwall
