#include "cli/gaps_option.h"

#include <fmt/format.h>

#include "sim/error.h"
#include "traces/run/analysis/verdict.h"

namespace memwall {

void add_gaps_option(CLI::App& app, bool& accept_gaps) {
  app.add_flag(
      "--accept-gaps", accept_gaps,
      "Take a capture with gaps beyond 5 % (kernels missing, waits without a cause), or of which most is missing: its "
      "step time is wrong, or means nothing");
}

void require_replay(const std::string& step, const Trace& trace, bool accept_gaps) {
  if (asks_first(trace.completeness) && !accept_gaps)
    throw UsageError(fmt::format("{}: {} To see what its records give all the same: --accept-gaps.", step,
                                 completeness_sentence(trace.completeness, trace.completeness_reason)));
}

}  // namespace memwall
