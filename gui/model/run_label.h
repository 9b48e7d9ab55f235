// What runs are called that one picture shows: what was changed tells them apart, not their files.
#pragma once

#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall::gui {

// "checkpoint:mode=full + zero:stage=3 + pager lru"; "no policy".
std::string policies_of(const Run& run);

// One label per run: its policies, behind its step and its machine where those differ among the runs: "h100-sxm-80gb,
// no policy". Runs that would be called the same have their file's name in addition, and where that is the same too,
// its whole path. REQUIRES: as many files as runs.
std::vector<std::string> run_labels(const std::vector<const Run*>& runs, const std::vector<std::string>& files);

}  // namespace memwall::gui
