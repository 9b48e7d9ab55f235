// The machine that the ranks of a trace run on, written out: what a machine file says of one GPU, once per rank.
//
// The first rank has the tiers and links of the file under their names. Every further rank has device tiers of its own
// ("hbm rank 3", by its number in the job) and links of its own; a link with several sharers is common to as many ranks
// in the order of their numbers, so ranks 0 and 1, 2 and 3, ... share where there are two. Host and storage tiers are
// there once. Where one program stands for several ranks (Trace::ranks), these tiers are as large as the part of one of
// the ranks that share them: links with several sharers are counted likewise, by the engine.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// Where one rank finds what the machine of one GPU has: indices into RankMachine.
struct RankView {
  std::vector<std::uint8_t> tier;   // by index into the tiers of one GPU
  std::vector<std::uint16_t> link;  // likewise links
  std::vector<Route> routes;        // as those of one GPU, over this rank's tiers and links
};

// A machine whose tiers and links are those of all ranks. Where there is one rank they are the file's.
struct RankMachine : Machine {
  Machine one;                  // as one GPU has it; its tiers and links come first, with the same indices
  std::vector<RankView> views;  // one per rank
};

// `one` is the machine of one GPU.
// Throws UsageError where the ranks would have more tiers than can be numbered (255).
RankMachine machine_of_ranks(const Machine& one, const Trace& trace);
RankMachine machine_of_ranks(const RankMachine& ranks, const Trace& trace) = delete;  // it is written out already

// Bytes that are on each tier of the ranks' machine before the window and are no storages.
std::vector<Bytes> untracked_by_tier(const RankMachine& ranks, const Trace& trace);

}  // namespace memwall
