// What the 80 % interval of a step time is made of, in words.
#pragma once

#include <string>

#include "traces/run/analysis/step_interval.h"

namespace memwall {

// "of the step time, from the residuals of the cost model ...".
std::string interval_text(const StepInterval& interval, Duration step_time);

}  // namespace memwall
