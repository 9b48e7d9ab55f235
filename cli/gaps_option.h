// What several verbs take as --accept-gaps: a step time that is wrong or means nothing is not printed unasked.
#pragma once

#include <CLI/CLI.hpp>

#include "study/replay_check.h"

namespace memwall {

void add_gaps_option(CLI::App& app, bool& accept_gaps);

}  // namespace memwall
