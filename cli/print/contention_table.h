// What several processes get of one computer at the same time, measured and predicted.
#pragma once

#include <vector>

#include "cli/print/table.h"
#include "validate/report/contention.h"

namespace memwall {

Table contention_table(const std::vector<ContendedRate>& rates);

}  // namespace memwall
