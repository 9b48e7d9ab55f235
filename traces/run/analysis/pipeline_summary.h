// What each rank of a job whose model is divided into stages does with a step, and what the slowest stage costs.
//
// The parts of a step add up to it. Compute is what Accounting calls compute and recompute: a kernel runs. Where none
// does, and the rank's path lies in a collective, the time is
//   bubble    while a peer has not come yet: a message of the pipeline that nobody has sent, a collective of several
//             stages that one of them has not reached (the reductions at the end of a step included)
//   equals    likewise, where the one that has not come holds the same stages: a rank that is slower than its equals
//   exposed   while the collective runs, by the process group that it is of
// and the rest is other: host calls and gaps, copies, storage, the allocator.
// Ranks of a tensor-parallel or data-parallel group that one program stands for arrive together: theirs is exposed
// communication and never bubble.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/trace/pipeline_chunk.h"
#include "traces/run/analysis/accounting.h"
#include "traces/run/run.h"

namespace memwall {

// Times are means of a step.
struct StageSummary {
  std::uint32_t rank = 0;   // by number in the job
  std::uint32_t ranks = 1;  // that run its program, itself among them
  std::vector<PipelineChunk> chunks;
  Duration step_time{};
  Duration compute{}, recompute{};  // the second is part of the first
  Duration bubble{}, other{};
  Duration equals{};              // waits for ranks that hold the same chunks and are slower
  std::vector<Duration> exposed;  // by PipelineSummary::groups
  std::size_t tier = 0;           // its GPU's memory, an index into RunSummary::tiers
  Duration exposed_in_all() const;
  Duration work() const { return step_time - bubble - equals; }  // what the others wait for where it is longest
};

struct PipelineSummary {
  std::vector<std::string> groups;   // whose communication is exposed somewhere, in the order of Trace::groups
  std::vector<StageSummary> stages;  // as Trace::rank_table
  std::uint32_t stage_count = 0;     // virtual ones too
  // Forward passes of a stage within a step; 0 where no marks say it.
  std::uint32_t microbatches = 0;
  double bubble_share = 0;  // of the time of all ranks
  // (p - 1) / (v m + p - 1): of the time of all passes, with p ranks of v equal chunks, m micro-batches, and messages
  // that take no time (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
  // Megatron-LM", SC 2021, section 2.2). 0: m is not known, or v > 1 and m < p, of which that is not true.
  double ideal_bubble_share = 0;
  // An index into stages: whose work() takes longest, where that differs.
  std::optional<std::size_t> slowest;
  Duration slowest_cost{};  // its work less the mean of all ranks': what a step would gain at best, evenly divided
  // A rank that computes longer than another one of the same chunks, an index into stages; and by how much, per step.
  std::optional<std::size_t> straggler;
  Duration straggles{};
  bool has_several() const { return stages.size() > 1; }
};

// Nothing where the trace does not say which stages its ranks have. `paths` and `timelines`: of every rank, as
// critical_paths_of_ranks() and class_timelines() give them.
std::optional<PipelineSummary> pipeline_summary(const Run& run, const std::vector<std::vector<PathSegment>>& paths,
                                                const std::vector<std::vector<ClassSpan>>& timelines);

// Does any rank of the trace say which part of a model it has?
bool has_stages(const Trace& trace);

// "stage 1 of 8, layers 12 to 23"; of several chunks "stages 1, 9 and 17 of 24, layers 4 to 7, 36 to 39, 68 to 71".
std::string stage_text(const PipelineSummary& pipeline, const StageSummary& stage);
// "stage 1", "stages 1, 9 and 17".
std::string stage_name(const StageSummary& stage);

}  // namespace memwall
