#include "study/layout/sharing_job.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/workload/generate/generate.h"
#include "study/study.h"
#include "traces/run/analysis/gpu_memory_peaks.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace {

// From the third on a micro-batch begins with gradients' shards and the allocator's cache as the next does.
constexpr std::int64_t kFewMicrobatches = 4;

Run run_of(const ParallelJob& job, std::uint32_t replicas, const Machine& machine, std::int64_t microbatches,
           const std::string& allocator, Bytes budget = 0) {
  Recipe recipe = job.recipe;
  recipe.accumulation = microbatches;
  Study study;
  study.add_step("job", generate_step(job.model, recipe));
  study.add_machine("cluster", machine);
  Scenario scenario{.step = {"job"}, .machine = "cluster", .policies = {sharing_policy(replicas)}};
  scenario.allocator = allocator;
  return study.run(scenario, {.record = false, .device_bytes = budget}).run;
}

}  // namespace

std::string sharing_policy(std::uint32_t replicas) {
  return fmt::format("fsdp:ranks={},reduce_dtype=fp32,clip_grad_norm=1", replicas);
}

SharingJob sharing_job(const ParallelJob& job, std::uint32_t replicas, ChunkCostCache& costs) {
  const std::int64_t all = job.pipeline.microbatches, few = std::min(all, kFewMicrobatches);
  const Run run = run_of(job, replicas, costs.machine(), few, "ideal");
  const ChunkCosts& pass = costs.of(job, 0, 0);
  SharingJob found;
  FoldedJob& outcome = found.outcome;
  outcome.step_time = run.result.end, outcome.mean_end = mean_step(run);
  if (few < all) {
    const Run shorter = run_of(job, replicas, costs.machine(), few - 1, "ideal");
    outcome.step_time += (all - few) * (run.result.end - shorter.result.end);
    outcome.mean_end += (all - few) * (mean_step(run) - mean_step(shorter));
  }
  outcome.microbatches = all, outcome.simulated = few;
  outcome.flops = static_cast<double>(all) * pass.flops;
  outcome.ops = run.trace->ops.size();
  outcome.stages.push_back({.rank = 0,
                            .ranks = static_cast<std::uint32_t>(job.tensor()) * replicas,
                            .peak = gpu_memory_peaks(run)->allocated,
                            .passes = all * (pass.forward.device + pass.backward.device)});
  found.interval = summarize(run).step_interval;
  if (found.interval) {  // of the step that was simulated; the others are as uncertain
    const double longer = to_seconds(outcome.mean_end) / to_seconds(mean_step(run));
    for (Duration* end : {&found.interval->low, &found.interval->high}) *end = from_seconds(to_seconds(*end) * longer);
  }
  return found;
}

ReservedMemory reserved_of_sharing_job(const ParallelJob& job, std::uint32_t replicas, const Machine& machine,
                                       Bytes budget) {
  const std::int64_t few = std::min(job.pipeline.microbatches, kFewMicrobatches);
  const Run run = run_of(job, replicas, machine, few, "pytorch", budget);
  const GpuMemoryPeaks peaks = *gpu_memory_peaks(run);
  return {.fits = run.result.fits, .reserved = peaks.reserved, .missing = peaks.missing, .microbatches = few};
}

}  // namespace memwall
