// Tables of what `memwall plan --gpus` found.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"
#include "study/layout/layout_search.h"

namespace memwall {

// `workload`: as it was given, without settings; `budget`: of a GPU's memory.
std::vector<Table> layout_tables(const LayoutSearch& search, const LayoutRequest& request, const std::string& workload);

}  // namespace memwall
