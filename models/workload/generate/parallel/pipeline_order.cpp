#include "models/workload/generate/parallel/pipeline_order.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"

namespace memwall {
namespace {

std::int64_t rounds_of(const PipelineShape& s) { return std::max<std::int64_t>(1, s.microbatches / s.ranks); }

std::int64_t group_of(const PipelineShape& s) {
  if (s.in_rounds) return s.microbatches / rounds_of(s);
  return s.group == 0 ? s.ranks : s.group;
}

// Micro-batches in groups of N (the last may be shorter), within a group chunk by chunk, within a chunk one micro-batch
// after the other; backward the chunks in reverse (get_schedule_table).
std::vector<PipelinePass> virtual_passes(const PipelineShape& s, bool backward) {
  std::vector<PipelinePass> passes;
  const std::int64_t group = group_of(s);
  for (std::int64_t first = 0; first < s.microbatches; first += group)
    for (std::int64_t chunk = 0; chunk < s.chunks; ++chunk)
      for (std::int64_t k = first; k < std::min(first + group, s.microbatches); ++k)
        passes.push_back({backward, backward ? s.chunks - 1 - chunk : chunk, k});
  return passes;
}

void require_rounds(const PipelineShape& s) {
  const std::int64_t rounds = rounds_of(s);
  if (s.microbatches % rounds == 0) return;
  throw UsageError(fmt::format(
      "{} micro-batches cannot be interleaved over {} GPUs: torch's ScheduleInterleaved1F1B makes {} rounds "
      "of them, and refuses what does not divide; expected a multiple of {}.",
      s.microbatches, s.ranks, rounds, rounds));
}

}  // namespace

std::int64_t in_a_row(const PipelineShape& s) { return s.chunks == 1 ? 1 : group_of(s); }

void require_schedule(PipelineSchedule schedule, const PipelineShape& s) {
  if (s.chunks == 1) return;
  if (schedule == PipelineSchedule::gpipe)
    throw UsageError(fmt::format(
        "GPipe with {} chunks of layers per GPU (interleave) is not implemented; expected interleave 1, or 1F1B.",
        s.chunks));
  if (s.ranks == 1)
    throw UsageError(fmt::format("interleave {} needs a pipeline of several GPUs{}; expected pipeline 2 or more.",
                                 s.chunks, s.in_rounds ? "" : ", as in Megatron-LM"));
  if (s.in_rounds) return require_rounds(s);
  const std::int64_t group = group_of(s), rest = s.microbatches % group;
  if (group < s.ranks)
    throw UsageError(fmt::format("microbatch_group {} is smaller than the pipeline of {} GPUs, which Megatron-LM "
                                 "refuses; expected at least {}.",
                                 group, s.ranks, s.ranks));
  if (s.microbatches < group || (rest != 0 && rest < s.ranks))
    throw UsageError(
        fmt::format("{} micro-batches cannot be interleaved in groups of {} over {} GPUs: Megatron-LM takes at least "
                    "one group, and a last one that is empty or has at least {}; expected a multiple of {}.",
                    s.microbatches, group, s.ranks, s.ranks, group));
}

std::int64_t warm_up_passes(PipelineSchedule schedule, const PipelineShape& s, std::int64_t rank) {
  const std::int64_t all = s.chunks * s.microbatches, behind = s.ranks - rank - 1;
  if (schedule == PipelineSchedule::gpipe) return all;
  if (s.chunks == 1) return std::min(behind, all);
  return std::min(2 * behind + (s.chunks - 1) * group_of(s), all);
}

std::vector<PipelinePass> pipeline_order(PipelineSchedule schedule, const PipelineShape& s, std::int64_t rank) {
  const std::vector<PipelinePass> forward = virtual_passes(s, false), backward = virtual_passes(s, true);
  const auto warm_up = static_cast<std::size_t>(warm_up_passes(schedule, s, rank));
  std::vector<PipelinePass> order(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(warm_up));
  order.reserve(2 * forward.size());
  for (std::size_t k = 0; k < backward.size(); ++k) {
    if (warm_up + k < forward.size()) order.push_back(forward[warm_up + k]);
    order.push_back(backward[k]);
  }
  return order;
}

std::int64_t most_in_flight(const std::vector<PipelinePass>& order) {
  std::int64_t now = 0, most = 0;
  for (const PipelinePass& pass : order) {
    now += pass.backward ? -1 : 1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace memwall
