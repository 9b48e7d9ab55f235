// What a step takes and where its time goes, in words: of a run, and of each rank of it.
#pragma once

#include <string>

#include "gui/model/open_run.h"

namespace memwall::gui {

// "A step takes 12.3 ms: compute 61.2 %, copy 20.0 %, host 18.8 %." Of several steps and ranks the mean. Before the run
// is analysed, and of runs that are too large for it at once: the step time and, from the level of detail of a
// few steps, what streams do: "A step takes 12.3 ms; streams that compute work 81 % of the time: about backward 50 %,
// forward 31 %." Throws InputError.
std::string step_sentence(const OpenRun& run);

// The same of one rank in a few words: "step 12.3 ms: compute 61 %, copy 20 %, host 19 %"; "" before the run is
// analysed. The longest class stands first: what follows may be cut.
std::string rank_times(const OpenRun& run, std::size_t rank);

// Of a run with several ranks: "Rank 2", in several nodes "Rank 2 (node 0)"; once it is analysed and the others wait for
// that rank, "Rank 2, straggler".
// REQUIRES: the rank is listed.
std::string rank_title(const OpenRun& run, std::size_t rank);
// All of it: "Rank 2, straggler: step 12.3 ms: compute 61 %, host 39 %; held the others up 3.40 ms".
std::string rank_sentence(const OpenRun& run, std::size_t rank);

}  // namespace memwall::gui
