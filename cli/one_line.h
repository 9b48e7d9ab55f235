// A scenario as one command, which gives the same result from any folder: the option --one-line.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "study/scenario.h"

namespace memwall {

// What is a file is named by its whole path, in policies too, so that the scenario holds in any folder.
Scenario with_whole_paths(Scenario scenario);

// "memwall run 'step=/home/me/gpt.mwt policy=checkpoint'", for a shell, without line end; before it the folders of
// machines and networks that the environment names. Throws UsageError where the step came through a pipe.
std::string one_line(const Scenario& scenario, bool accept_gaps = false);

// Throws InputError, as a run does, where what would be read of a step is not there or of an unknown kind; reads no
// more of it than tells the kind.
void require_step(const Scenario& scenario);

// --one-line. `what`: which result the line gives.
void add_one_line_option(CLI::App& app, bool& one_line, const std::string& what);

}  // namespace memwall
