// The machine that the ranks of a trace run on, written out: what a machine file says of one GPU, once per rank.
//
// The first rank has the tiers and links of the file under their names. Every further rank has device tiers of its own
// ("hbm rank 3", by its number in the job) and links of its own; a link with several sharers is common to as many ranks
// by their numbers, so ranks 0 and 1, 2 and 3, ... share where there are two. A host or storage tier is common to the
// ranks that share what leads to it.
//
// Where a program stands for several ranks (Rank::stands_for), each of them counts on the links that they share: the
// flows of a rank on a link are as many as ranks of its program are behind it. Links behind which there are equally
// many ranks of each program are one and the same. Where all ranks of a trace run one program (Trace::ranks), the
// engine counts likewise, by Link::sharers. Tiers are as large as one rank's part (unequal numbers: tier_copies.h).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// Where one rank finds what the machine of one GPU has: indices into RankMachine.
struct RankView {
  std::vector<std::uint16_t> tier;  // by index into the tiers of one GPU
  std::vector<std::uint16_t> link;  // likewise links
  std::vector<Route> routes;        // as those of one GPU, over this rank's tiers and links
  // By index into the links of one GPU: how many ranks of this one's program are behind its link. Shares of `routes`
  // count them already. Empty: one each.
  std::vector<double> multiplicity;
  std::size_t core_pool = 0;  // index into RankMachine::core_pools
  double core_times = 1;      // how many ranks of this one's program have that pool in common
  double times(std::uint16_t link_of_one) const { return multiplicity.empty() ? 1 : multiplicity[link_of_one]; }
};

// Processor cores that ranks have in common: those of a host, or of one of its NUMA nodes.
struct CorePool {
  double cores = 0;
  double multiplicity = 1;  // of one program's ranks, where the trace holds one program
};

// A machine whose tiers and links are those of all ranks. Where there is one rank they are the file's.
struct RankMachine : Machine {
  Machine one;                       // as one GPU has it; its tiers and links come first, with the same indices
  std::vector<RankView> views;       // one per rank
  std::vector<CorePool> core_pools;  // none where the number of cores is not known
};

// `one` is the machine of one GPU.
// Throws UsageError where the ranks would have more tiers than can be numbered (32767), or more links (65535), or where
// one program stands for ranks that are not in equal places: whose links and memories other numbers of ranks of each
// program share (with_equal_places of sim/trace/equal_places.h gives such ranks programs of their own).
RankMachine machine_of_ranks(const Machine& one, const Trace& trace);
RankMachine machine_of_ranks(const RankMachine& ranks, const Trace& trace) = delete;  // it is written out already

// How many ranks, neighbours by number, share a link, a memory or cores: each size above 1 once, ascending.
std::vector<std::uint32_t> shared_sizes(const Machine& one);

// Threads with which a rank works on the CPU.
double worker_threads(const HostCosts& host);

// Bytes that are on each tier of the ranks' machine before the window and are no storages.
std::vector<Bytes> untracked_by_tier(const RankMachine& ranks, const Trace& trace);

}  // namespace memwall
