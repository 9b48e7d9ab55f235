#include "study/replay_check.h"

#include <fmt/format.h>

#include "sim/error.h"
#include "traces/run/analysis/verdict.h"

namespace memwall {

void require_replay(const std::string& step, const Trace& trace, bool accept_gaps) {
  if (asks_first(trace.completeness) && !accept_gaps)
    throw UsageError(fmt::format("{}: {} To see what its records give all the same: --accept-gaps.", step,
                                 completeness_sentence(trace.completeness, trace.completeness_reason)));
}

}  // namespace memwall
