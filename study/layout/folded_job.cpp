#include "study/layout/folded_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/hw/modelled_step.h"
#include "sim/engine/simulation.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

// What the costs of a chunk depend on, but the machine.
std::string key_of(const ParallelJob& job, std::int64_t rank, std::int64_t chunk) {
  const Recipe& r = job.recipe;
  const ModelParallel& p = r.parallel;
  const StageLayers& layers = job.stages[static_cast<std::size_t>(chunk * job.pipeline.ranks + rank)];
  const bool tied_here = layers.embedding && layers.loss;
  return fmt::format("{} {} {} {} {}|{} {} {} {} {}|{} {} {} {} {}|{} {} {}", job.model.name, layers.count,
                     layers.embedding, layers.loss, tied_here, p.tensor, p.sequence_parallel, r.batch, r.sequence,
                     static_cast<int>(p.framework), static_cast<int>(r.checkpoint),
                     static_cast<int>(p.checkpoint_method), p.checkpoint_layers, static_cast<int>(p.main_gradients),
                     drains(job), static_cast<int>(r.attention), r.accumulation > 1, p.deallocate_outputs);
}

ParallelJob with_microbatches(ParallelJob job, std::int64_t microbatches) {
  job.recipe.accumulation = job.pipeline.microbatches = microbatches;
  return job;
}

// Times that were found stand in for what pricing makes of the folded ops.
void set_times(Trace& trace, std::size_t offset, const std::vector<PassPlace>& places,
               const std::vector<const ChunkCosts*>& costs) {
  for (const PassPlace& place : places) {
    if (!place.folded) continue;
    const ChunkCosts& chunk = *costs[static_cast<std::size_t>(place.pass.chunk)];
    const PassTime& time = place.pass.backward ? chunk.backward : chunk.forward;
    Op& kernel = trace.ops[offset + place.begin];
    kernel.duration = time.device - time.tail;
    kernel.host_gap = Duration{};
    kernel.host_cost = time.to_launch;
    Op& host = trace.ops[offset + place.host];
    host.duration = time.host - time.to_launch;
    host.host_gap = host.host_cost = Duration{};
    if (place.tail == kNoOp) continue;
    Op& tail = trace.ops[offset + place.tail];
    tail.duration = time.tail;
    tail.host_gap = tail.host_cost = Duration{};
  }
}

class FoldedRuns {
 public:
  FoldedRuns(const ParallelJob& job, ChunkCostCache& cache) : job_(job), machine_(cache.machine()) {
    for (std::int64_t rank = 0; rank < job.pipeline.ranks; ++rank) {
      costs_.emplace_back();
      for (std::int64_t chunk = 0; chunk < job.pipeline.chunks; ++chunk)
        costs_.back().push_back(&cache.of(job, rank, chunk));
    }
  }

  FoldedJob run(std::int64_t microbatches) const {
    const ParallelJob job = with_microbatches(job_, microbatches);
    std::vector<RankProgram> programs;
    std::vector<std::vector<PassPlace>> places;
    std::vector<std::size_t> offsets{0};
    for (std::int64_t rank = 0; rank < job.pipeline.ranks; ++rank) {
      std::vector<FoldedChunk> folded;
      for (const ChunkCosts* costs : costs_[static_cast<std::size_t>(rank)]) folded.push_back(costs->memory);
      StageTrace stage = StageProgram(job, rank).write(std::move(folded));
      places.push_back(std::move(stage.passes));
      offsets.push_back(offsets.back() + stage.trace.ops.size());
      programs.push_back({job.number(rank), std::move(stage.trace), folded_ranks(job, rank)});
    }
    Trace trace = modelled_on(joined_ranks(std::move(programs)), machine_);
    for (std::size_t i = 0; i < places.size(); ++i) set_times(trace, offsets[i], places[i], costs_[i]);
    return outcome(trace);
  }

 private:
  FoldedJob outcome(const Trace& trace) const {
    const RankMachine ranks = machine_of_ranks(machine_, trace);
    SimulationOptions options;
    options.allocator = "ideal";
    const SimulationResult result = simulate(trace, ranks, options);
    FoldedJob folded;
    folded.step_time = result.end;
    folded.ops = trace.ops.size();
    const auto device = static_cast<std::size_t>(
        std::find_if(machine_.tiers.begin(), machine_.tiers.end(), [](const auto& t) { return t.name == "hbm"; }) -
        machine_.tiers.begin());
    const std::int64_t copies = job_.tensor() * job_.data();
    for (std::int64_t rank = 0; rank < job_.pipeline.ranks; ++rank) {
      const TierResult& tier = result.tiers[ranks.views[static_cast<std::size_t>(rank)].tier[device]];
      FoldedStage stage{job_.number(rank), static_cast<std::uint32_t>(copies), tier.peak_allocated, {}, {}};
      std::copy(std::begin(tier.peak_by_kind), std::end(tier.peak_by_kind), stage.peak_by_kind.begin());
      for (const ChunkCosts* c : costs_[static_cast<std::size_t>(rank)]) {
        stage.passes += job_.pipeline.microbatches * (c->forward.device + c->backward.device);
        folded.flops += static_cast<double>(job_.pipeline.microbatches) * c->flops / static_cast<double>(job_.pipeline.ranks);
      }
      folded.stages.push_back(stage);
    }
    return folded;
  }

  const ParallelJob& job_;
  const Machine& machine_;
  std::vector<std::vector<const ChunkCosts*>> costs_;  // by rank and chunk
};

// Micro-batches after which a schedule repeats, and how many there are before that for sure.
struct Period {
  std::int64_t first, length;
};

Period period_of(const ParallelJob& job) {
  const PipelineShape& s = job.pipeline;
  const std::int64_t length = s.chunks > 1 ? (s.group == 0 ? s.ranks : s.group) : s.ranks > 1 ? 2 : 1;
  const std::int64_t least = s.ranks > 1 ? 2 * s.ranks + (s.chunks > 1 ? length : 0) : 2;
  return {least + ((s.microbatches - least) % length + length) % length, length};
}

}  // namespace

std::size_t FoldedJob::fullest() const {
  return static_cast<std::size_t>(std::max_element(stages.begin(), stages.end(),
                                                   [](const auto& a, const auto& b) { return a.peak < b.peak; }) -
                                  stages.begin());
}

std::size_t FoldedJob::slowest() const {
  return static_cast<std::size_t>(std::max_element(stages.begin(), stages.end(),
                                                   [](const auto& a, const auto& b) { return a.passes < b.passes; }) -
                                  stages.begin());
}

const ChunkCosts& ChunkCostCache::of(const ParallelJob& job, std::int64_t rank, std::int64_t chunk) {
  const std::string key = key_of(job, rank, chunk);
  {
    const std::lock_guard lock(mutex_);
    const auto found = costs_.find(key);
    if (found != costs_.end()) return *found->second;
  }
  auto costs = std::make_unique<ChunkCosts>(chunk_costs(job, rank, chunk, machine_));
  const std::lock_guard lock(mutex_);
  return *costs_.emplace(key, std::move(costs)).first->second;
}

FoldedJob folded_job(const ParallelJob& job, ChunkCostCache& costs, bool fold_microbatches) {
  const FoldedRuns runs(job, costs);
  const std::int64_t all = job.pipeline.microbatches;
  const Period period = period_of(job);
  FoldedJob folded;
  for (std::int64_t first = period.first;
       fold_microbatches && job.recipe.parallel.schedule != PipelineSchedule::gpipe && first + 2 * period.length < all;
       first += 2 * period.length) {
    const Duration one = runs.run(first).step_time, two = runs.run(first + period.length).step_time;
    folded = runs.run(first + 2 * period.length);
    const Duration growth = folded.step_time - two, before = two - one;
    constexpr std::int64_t kEqual = 1'000'000;  // a millionth of the growth: what rounding leaves
    const Duration apart = growth > before ? growth - before : before - growth;
    if (kEqual * apart > growth) continue;
    folded.simulated = first + 2 * period.length;
    folded.step_time += (all - folded.simulated) / period.length * growth;
    folded.microbatches = all;
    return folded;
  }
  folded = runs.run(all);
  folded.microbatches = folded.simulated = all;
  return folded;
}

}  // namespace memwall
