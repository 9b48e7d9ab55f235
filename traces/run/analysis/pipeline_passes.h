// When each rank of a pipeline runs which pass, as the marks of its program say it (sim/trace/pipeline_chunk.h).
#pragma once

#include <cstdint>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

struct PassSpan {
  enum class Work : std::uint8_t { forward, backward, update } work = Work::forward;
  std::uint32_t stage = 0;       // of an update: 0
  std::uint32_t microbatch = 0;  // from 0, of its step
  // From the first kernel's begin to the last one's end, waits between included: of tensor-parallel collectives, say.
  // An update has a span for what it does before it waits for others, and one for what it does then.
  Time begin{}, end{};
};
struct MessageSpan {
  Time begin{}, end{};  // of the transfer, from where both sides have come
};
struct RankPasses {
  std::vector<PassSpan> passes;       // in the order of the program
  std::vector<MessageSpan> messages;  // of the groups "pipeline"
};

// One entry per rank of the trace; empty ones where there are no marks.
std::vector<RankPasses> pipeline_passes(const Run& run);

}  // namespace memwall
