// Which rank or link it is and where, in words.
#pragma once

#include <string>

#include "gui/model/open_run.h"

namespace memwall::gui {

// "rank 11 (node 1)": whose program an op is of, and where that rank is; without the node where the machine says
// nothing of nodes. "" of a run that holds one rank, and of an op that the run does not hold.
std::string rank_and_node(const OpenRun& run, OpId op);

// "node 1" of a run whose ranks are in several nodes, else "". `rank`: an index into Trace::rank_table, which has it.
std::string node_text(const OpenRun& run, std::size_t rank);

// Where a link is, of a run whose ranks are in several nodes: "node 1", or "several nodes"; else "". `link`: an index
// into Machine::links of all ranks, which have it.
std::string link_node_text(const Run& run, std::size_t link);

}  // namespace memwall::gui
