#include "cli/gaps_option.h"

#include <fmt/format.h>

#include "sim/error.h"
#include "traces/run/analysis/verdict.h"

namespace memwall {

void add_gaps_option(CLI::App& app, bool& accept_gaps) {
  app.add_flag("--accept-gaps", accept_gaps,
               "Take a capture of which most is missing (no kernels, no launches): its step time means nothing");
}

void require_replay(const std::string& step, const Trace& trace, bool accept_gaps) {
  if (trace.completeness == Completeness::not_a_replay && !accept_gaps)
    throw UsageError(fmt::format("{}: {} To see what its records give all the same: --accept-gaps.", step,
                                 completeness_sentence(trace.completeness, trace.completeness_reason)));
}

}  // namespace memwall
