#include "study/layout/folded_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/hw/modelled_step.h"
#include "sim/engine/simulation.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/equal_places.h"
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

// Of a program in the trace of all: the rank of the pipeline whose it is, its first op.
struct ProgramPlace {
  std::size_t rank = 0, first = 0;
};

std::int64_t compared_microbatches(const PipelineShape& s) {
  return std::max({2 * schedule_period(s), 2 * s.ranks, std::int64_t{4}});
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

  struct Outcome {
    FoldedJob job;
    std::optional<Duration> growth{};  // of the step with each further period, where it has become steady
  };

  Outcome run(std::int64_t microbatches) const {
    const ParallelJob job = with_microbatches(job_, microbatches);
    std::vector<RankProgram> programs;
    std::vector<std::vector<PassPlace>> places;
    std::vector<std::size_t> op_counts;
    for (std::int64_t rank = 0; rank < job.pipeline.ranks; ++rank) {
      std::vector<FoldedChunk> folded;
      for (const ChunkCosts* costs : costs_[static_cast<std::size_t>(rank)]) folded.push_back(costs->memory);
      StageTrace stage = StageProgram(job, rank).write(std::move(folded));
      places.push_back(std::move(stage.passes));
      op_counts.push_back(stage.trace.ops.size());
      programs.push_back({job.number(rank), std::move(stage.trace), job.folded_ranks(rank)});
    }
    Trace folded = with_equal_places(joined_ranks(std::move(programs)), shared_sizes(machine_));
    const std::vector<ProgramPlace> written = program_places(folded, op_counts);
    Trace trace = modelled_on(std::move(folded), machine_);
    for (const ProgramPlace& p : written) set_times(trace, p.first, places[p.rank], costs_[p.rank]);
    return outcome(trace, places, written);
  }

  std::int64_t period() const { return schedule_period(job_.pipeline); }
  // Micro-batches that are looked at for it: each of them begins as much later than the one a period before.
  std::int64_t window() const { return compared_microbatches(job_.pipeline); }

 private:
  // There are several programs of one rank of the pipeline where those for which it stands are in unequal places of the
  // machine. They follow each other, and the first has its number.
  std::vector<ProgramPlace> program_places(const Trace& trace, const std::vector<std::size_t>& sizes) const {
    std::vector<ProgramPlace> programs;
    std::size_t first = 0;
    for (const Rank& rank : trace.rank_table) {
      const std::size_t next = programs.empty() ? 0 : programs.back().rank + 1;
      const bool is_next = next < costs_.size() && rank.number == job_.number(static_cast<std::int64_t>(next));
      programs.push_back({is_next ? next : programs.back().rank, first});
      first += sizes[programs.back().rank];
    }
    return programs;
  }

  Outcome outcome(const Trace& trace, const std::vector<std::vector<PassPlace>>& places,
                  const std::vector<ProgramPlace>& written) const {
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
    for (std::size_t p = 0; p < written.size(); ++p) {
      if (p > 0 && written[p].rank == written[p - 1].rank) continue;  // as full
      const auto rank = static_cast<std::int64_t>(written[p].rank);
      const TierResult& tier = result.tiers[ranks.views[p].tier[device]];
      FoldedStage stage{job_.number(rank), static_cast<std::uint32_t>(copies), tier.peak_allocated, {}, {}};
      std::copy(std::begin(tier.peak_by_kind), std::end(tier.peak_by_kind), stage.peak_by_kind.begin());
      for (const ChunkCosts* c : costs_[written[p].rank]) {
        stage.passes += job_.pipeline.microbatches * (c->forward.device + c->backward.device);
        folded.flops += static_cast<double>(job_.pipeline.microbatches) * c->flops / static_cast<double>(job_.pipeline.ranks);
      }
      folded.stages.push_back(stage);
    }
    return {std::move(folded), growth(result, places, written)};
  }

  // The last forward passes of all chunks of all ranks, where they begin at equal distances.
  std::optional<Duration> growth(const SimulationResult& result, const std::vector<std::vector<PassPlace>>& places,
                                 const std::vector<ProgramPlace>& written) const {
    std::optional<Duration> common;
    for (const ProgramPlace& program : written) {
      std::vector<std::vector<Time>> begins(static_cast<std::size_t>(job_.pipeline.chunks));
      for (const PassPlace& place : places[program.rank])
        if (!place.pass.backward && place.folded)
          begins[static_cast<std::size_t>(place.pass.chunk)].push_back(result.records[program.first + place.begin].start);
      for (const std::vector<Time>& of_chunk : begins)
        if (!is_steady(of_chunk, common)) return std::nullopt;
    }
    return common;
  }

  bool is_steady(const std::vector<Time>& begins, std::optional<Duration>& common) const {
    constexpr std::int64_t kEqual = 1'000'000;  // a millionth: what rounding leaves
    const auto size = static_cast<std::int64_t>(begins.size());
    if (size < window()) return false;
    for (std::int64_t k = size - window() + period(); k < size; ++k) {
      const Duration later = begins[static_cast<std::size_t>(k)] - begins[static_cast<std::size_t>(k - period())];
      if (!common) common = later;
      const Duration apart = later > *common ? later - *common : *common - later;
      if (kEqual * apart > *common) return false;
    }
    return true;
  }

  const ParallelJob& job_;
  const Machine& machine_;
  std::vector<std::vector<const ChunkCosts*>> costs_;  // by rank and chunk
};

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

const std::optional<ChunkEvents>& ChunkCostCache::events_of(const ParallelJob& job, std::int64_t rank,
                                                            std::int64_t chunk) {
  const std::string key = key_of(job, rank, chunk);
  {
    const std::lock_guard lock(mutex_);
    const auto found = events_.find(key);
    if (found != events_.end()) return *found->second;
  }
  constexpr std::int64_t kPasses = 3;
  auto events = std::make_unique<std::optional<ChunkEvents>>(
      chunk_events(StageProgram(job, rank).write_chunk(chunk, kPasses, false)));
  const std::lock_guard lock(mutex_);
  return *events_.emplace(key, std::move(events)).first->second;
}

std::int64_t schedule_period(const PipelineShape& s) { return s.chunks == 1 ? 1 : s.group == 0 ? s.ranks : s.group; }

std::int64_t few_microbatches(const ParallelJob& job) {
  const PipelineShape& shape = job.pipeline;
  const std::int64_t period = schedule_period(shape);
  const std::int64_t warm_up = warm_up_passes(job.recipe.parallel.schedule, shape, 0) / shape.chunks + 1;
  return (warm_up + compared_microbatches(shape) + period - 1) / period * period + shape.microbatches % period;
}

FoldedJob folded_job(const ParallelJob& job, ChunkCostCache& costs, bool fold_microbatches) {
  const FoldedRuns runs(job, costs);
  const std::int64_t all = job.pipeline.microbatches, period = runs.period(), rest = all % period;
  const bool repeats = fold_microbatches && job.recipe.parallel.schedule != PipelineSchedule::gpipe;
  std::int64_t few = few_microbatches(job);
  for (; repeats && few < all; few = 2 * (few - rest) + rest) {
    FoldedRuns::Outcome outcome = runs.run(few);
    if (!outcome.growth) continue;
    FoldedJob folded = std::move(outcome.job);
    folded.step_time += (all - few) / period * *outcome.growth;
    folded.microbatches = all;
    folded.simulated = few;
    return folded;
  }
  FoldedJob folded = runs.run(all).job;
  folded.microbatches = folded.simulated = all;
  return folded;
}

}  // namespace memwall
