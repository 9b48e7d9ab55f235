// What several verbs take as --accept-gaps: a step time that is wrong or means nothing is not printed unasked.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "sim/trace/trace.h"

namespace memwall {

void add_gaps_option(CLI::App& app, bool& accept_gaps);

// Throws UsageError where the trace is not a replay, or its gaps are over the limit, and nobody asked for it. `step`:
// what to call it.
void require_replay(const std::string& step, const Trace& trace, bool accept_gaps);

}  // namespace memwall
