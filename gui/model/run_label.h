// What runs are called that one picture shows: what was changed tells them apart, not their files.
#pragma once

#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall::gui {

// "checkpoint:mode=full + zero:stage=3 + pager lru"; "no policy".
std::string policies_of(const Run& run);

// One label per run: its policies, behind its step and its machine and before its settings (settings_text) where those
// differ among the runs: "h100-sxm-80gb, no policy". Runs that would be called the same have their file's name in
// addition, and where that is the same too, its whole path. REQUIRES: as many files as runs.
std::vector<std::string> run_labels(const std::vector<const Run*>& runs, const std::vector<std::string>& files);

// What the labels leave out because all runs have it: step, machine with its overrides, settings. "" where they share
// nothing. "gpt2 on h100-sxm-80gb + pcie=gen5, allocator ideal". REQUIRES: one run or more.
std::string shared_headline(const std::vector<const Run*>& runs);

}  // namespace memwall::gui
