// What each rank of a run did, and who waited for whom: the figures that `memwall run` prints for a trace that holds
// several ranks. Times of collectives count those that met others in the trace.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/duration_sum.h"
#include "traces/run/run.h"

namespace memwall {

struct RankSummary {
  std::uint32_t number = 0;  // in the job
  std::uint32_t steps = 0;
  Duration step_time{};  // mean over its steps
  Duration gpu_span{};   // first start to last end of its work on the GPU, in the whole run
  Duration end{};        // of all its work
  DurationSum peer_wait;  // its collectives had begun and those of others had not: sum over the run
  DurationSum held_up;    // by how much the others would have met earlier without it: sum over the rendezvous to
                         // which it came last, of what it was later than the one before
  std::uint64_t collectives = 0;  // collectives that it had in common with others of the trace
  std::uint64_t last = 0;         // of these, to which it came last
  std::optional<std::uint32_t> node{};  // nothing where the machine says nothing of nodes (sim/machine/gpu_place.h)
  std::optional<std::uint32_t>
      waits_for{};             // the rank, by its number, for which it waited longest; nothing: for nobody
  DurationSum waits_for_time;  // for that one
};

// One entry per rank of the trace; none where it holds one.
std::vector<RankSummary> rank_summaries(const Run& run);

// The rank that the others wait for, as an index: it held them up at least twice as long as any other rank did.
// Nothing where no rank stands out, or where they do not meet.
std::optional<std::size_t> straggler(const std::vector<RankSummary>& ranks);

}  // namespace memwall
