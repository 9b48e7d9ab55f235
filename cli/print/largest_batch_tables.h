// The largest batch that a machine holds, as tables.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "study/largest_batch.h"

namespace memwall {

// `title`: of the sizes tried; it names the step and its machine.
std::vector<Table> largest_batch_tables(const LargestBatch& found, const std::string& title);

}  // namespace memwall
