// Tables of what `memwall plan` found.
#pragma once

#include <vector>

#include "cli/print/table.h"
#include "study/step_advice.h"

namespace memwall {

std::vector<Table> advice_tables(const StepAdvice& advice);

}  // namespace memwall
