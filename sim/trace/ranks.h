// Several ranks of one job in one trace: each rank's program whole, one after the other, on host threads, streams and
// devices of its own. What joins them is the rendezvous of their collectives (kNoRendezvous in sim/trace/op.h).
//
// Each rank has a GPU's memory and links of its own; links with several sharers (Link::sharers) are shared by as many
// ranks in the order of their numbers, and host and storage tiers by all (sim/machine/rank_machine.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// One rank to be joined: its program, as imported alone, its number in the job, and for whom else it stands.
struct RankProgram {
  std::uint32_t number = 0;
  Trace trace;
  std::vector<std::uint32_t> stands_for{};  // as of Rank, as are these:
  std::vector<PipelineChunk> chunks{};
};

// The ranks as one trace, in the order of their numbers. Process groups are the same where their names and members are;
// rendezvous (Op::target of collectives) are kept as they are: equal numbers in different ranks meet. What all ranks
// know the trace knows; samples, tokens and bytes before the window are sums; a note that not all ranks have begins
// with its rank ("Rank 2: "); of budgets and of completeness the worst rank's stands for all.
// Throws InputError where the ranks together hold more than a trace can number.
// REQUIRES: at least one rank, numbers differ, each trace is sound and holds one rank.
Trace joined_ranks(std::vector<RankProgram> ranks);

// One rank's program again, rendezvous kept. REQUIRES: the trace is sound; index < rank_count(trace).
Trace one_rank(const Trace& trace, std::uint16_t index);

// Ranks whose programs the trace holds: 1 where rank_table is empty.
std::size_t rank_count(const Trace& trace);

// Do all ranks hold parameters of the same names and sizes? Data-parallel ranks do, stages of a pipeline do not. Of
// parameters that the trace does not know: yes.
bool hold_the_same_parameters(const Trace& trace);

// Whose program an op is of: an index into Trace::rank_table, 0 where that is empty.
// REQUIRES: the op's thread is listed, or it is placed and its stream is listed.
inline std::uint16_t rank_of(const Trace& trace, const Op& op) {
  return op.placed ? trace.streams[op.stream].rank : trace.threads[op.thread].rank;
}

// Likewise of each storage: the rank that names it in an op, else that of the stream whose pool it is from.
std::vector<std::uint16_t> storage_ranks(const Trace& trace);

// The op at whose host start a step ends: the first of the same rank at or behind Step::last that has a host part;
// trace.ops.size() if none comes, and the step ends with the rank's work. REQUIRES: the step's first op is one.
OpId end_of_step(const Trace& trace, const Step& step);

}  // namespace memwall
