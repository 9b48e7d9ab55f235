// What is said of a job whose model is divided into stages: which stage it is that runs out of memory, which one the
// others wait for, and for what. All of it "" or nothing where the run has no stages.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "traces/run/analysis/summary.h"

namespace memwall {

// "rank 8 (stage 1 of 8, layers 12 to 23)": whose memory a tier is. "" where one rank is all there is.
std::string stage_of_tier(const RunSummary& summary, const TierSummary& tier);

// How many other stages lack memory: "; of 7 others 2 lack memory, too".
std::string other_stages_missing(const RunSummary& summary, const TierSummary& worst);

// What GPUs wait for instead of "collectives", with its share of their time: "for other stages" (the bubble), "for
// tensor parallel communication". Largest first.
std::vector<std::pair<double, std::string>> communication_waits(const RunSummary& summary);

// The slowest stage and what it costs, the bubble and what it is at least.
std::string stages_sentence(const RunSummary& summary);

}  // namespace memwall
