// Tables of what `memwall plan --objective batch` found.
#pragma once

#include <vector>

#include "cli/print/table.h"
#include "study/batch_advice.h"

namespace memwall {

std::vector<Table> batch_advice_tables(const BatchAdvice& advice);

}  // namespace memwall
