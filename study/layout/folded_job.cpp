#include "study/layout/folded_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/engine/simulation.h"
#include "sim/machine/rank_machine.h"
#include "study/layout/chunk_places.h"
#include "study/layout/folded_trace.h"
#include "study/layout/pass_path.h"

namespace memwall {
namespace {

// What the costs of a chunk depend on, but the machine. `places`: of its rank (chunk_places).
std::string chunk_key(const ParallelJob& job, std::int64_t rank, std::int64_t chunk, const std::string& places) {
  const Recipe& r = job.recipe;
  const ModelParallel& p = r.parallel;
  const StageLayers& layers = job.stages[static_cast<std::size_t>(chunk * job.pipeline.ranks + rank)];
  const bool tied_here = layers.embedding && layers.loss;
  return fmt::format("{} {} {} {} {}|{} {} {} {} {}|{} {} {} {} {}|{} {} {} {}|{}", job.model.name, layers.count,
                     layers.embedding, layers.loss, tied_here, p.tensor, p.sequence_parallel, r.batch, r.sequence,
                     static_cast<int>(p.framework), static_cast<int>(r.checkpoint),
                     static_cast<int>(p.checkpoint_method), p.checkpoint_layers, static_cast<int>(p.main_gradients),
                     drains(job), static_cast<int>(r.attention), r.accumulation > 1, p.deallocate_outputs,
                     divides_parameters(r), places);
}

std::int64_t compared_microbatches(const PipelineShape& s) {
  return std::max({2 * schedule_period(s), 2 * s.ranks, std::int64_t{4}});
}

class FoldedRuns {
 public:
  FoldedRuns(const ParallelJob& job, ChunkCostCache& cache) : job_(job), cache_(cache), machine_(cache.machine()) {
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

  Outcome run(std::int64_t microbatches) const { return outcome(folded_trace(job_, cache_, microbatches)); }

  std::int64_t period() const { return schedule_period(job_.pipeline); }
  // Micro-batches that are looked at for it: each of them begins as much later than the one a period before.
  std::int64_t window() const { return compared_microbatches(job_.pipeline); }

 private:
  Outcome outcome(const FoldedTrace& written) const {
    const RankMachine ranks = machine_of_ranks(machine_, written.trace);
    SimulationOptions options;
    options.allocator = "ideal";
    const SimulationResult result = simulate(written.trace, ranks, options);
    FoldedJob folded;
    folded.step_time = result.end;
    folded.mean_end = mean_end(written, result);
    folded.ops = written.trace.ops.size();
    const std::int64_t copies = job_.tensor() * job_.data();
    for (std::int64_t rank = 0; rank < job_.pipeline.ranks; ++rank) {
      const StagePeak& peak = written.peaks[static_cast<std::size_t>(rank)];
      FoldedStage stage{job_.number(rank), static_cast<std::uint32_t>(copies), peak.bytes, peak.by_kind, {}};
      for (const ChunkCosts* c : costs_[static_cast<std::size_t>(rank)]) {
        stage.passes += job_.pipeline.microbatches * (c->forward.device + c->backward.device);
        folded.flops += static_cast<double>(job_.pipeline.microbatches) * c->flops / static_cast<double>(job_.pipeline.ranks);
      }
      folded.stages.push_back(stage);
    }
    return {std::move(folded), growth(result, written)};
  }

  // Of when the work of each program ends.
  static Duration mean_end(const FoldedTrace& written, const SimulationResult& result) {
    Duration sum{};
    for (std::size_t p = 0; p < written.programs.size(); ++p) {
      const bool is_last = p + 1 == written.programs.size();
      const std::size_t behind = is_last ? written.trace.ops.size() : written.programs[p + 1].first;
      Time end{};
      for (std::size_t id = written.programs[p].first; id < behind; ++id) {
        const OpRecord& record = result.records[id];
        end = std::max({end, record.host_end, record.end == kNever ? Time{} : record.end});
      }
      sum += end;
    }
    return sum / static_cast<std::int64_t>(written.programs.size());
  }

  // The last forward passes of all chunks of all ranks, where they begin at equal distances.
  std::optional<Duration> growth(const SimulationResult& result, const FoldedTrace& written) const {
    std::optional<Duration> common;
    for (const FoldedTrace::Program& program : written.programs) {
      std::vector<std::vector<Time>> begins(static_cast<std::size_t>(job_.pipeline.chunks));
      for (const PassPlace& place : written.passes[program.rank])
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
  ChunkCostCache& cache_;
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

std::string ChunkCostCache::key_of(const ParallelJob& job, std::int64_t rank, std::int64_t chunk) const {
  const std::array ranks{job.tensor(), job.data(), job.pipeline.ranks,
                         static_cast<std::int64_t>(job.recipe.parallel.rank_order), rank};
  return chunk_key(job, rank, chunk, places_.get(ranks, [&] { return chunk_places(job, rank, shared_sizes_); }));
}

const ChunkCosts& ChunkCostCache::of(const ParallelJob& job, std::int64_t rank, std::int64_t chunk) {
  const std::string key = key_of(job, rank, chunk);
  return costs_.get(key, [&] { return chunk_costs(job, rank, chunk, pricing_, *programs_, key); });
}

const std::optional<ChunkEvents>& ChunkCostCache::events_of(const ParallelJob& job, std::int64_t rank,
                                                            std::int64_t chunk) {
  constexpr std::int64_t kPasses = 3;
  return events_.get(key_of(job, rank, chunk), [&] {
    return chunk_events(StageProgram(job, rank).write_chunk(chunk, kPasses, false), !divides_parameters(job.recipe));
  });
}

const PassPath& ChunkCostCache::path_of(const ParallelJob& job, std::int64_t rank, std::int64_t chunk) {
  return *paths_.get(key_of(job, rank, chunk),
                     [&] { return std::make_shared<const PassPath>(pass_path(job, rank, chunk, pricing_)); });
}

std::int64_t schedule_period(const PipelineShape& s) { return in_a_row(s); }

std::int64_t few_microbatches(const ParallelJob& job) {
  const PipelineShape& shape = job.pipeline;
  const std::int64_t period = schedule_period(shape);
  const std::int64_t warm_up = warm_up_passes(job.recipe.parallel.schedule, shape, 0) / shape.chunks + 1;
  return (warm_up + compared_microbatches(shape) + period - 1) / period * period + shape.microbatches % period;
}

FoldedJob folded_job(const ParallelJob& job, ChunkCostCache& costs, bool fold_microbatches) {
  const FoldedRuns runs(job, costs);
  const std::int64_t all = job.pipeline.microbatches, period = runs.period(), rest = all % period;
  // torch's interleaved stages keep the gradients that they have sent until the end of the step.
  const bool keeps_sent = job.pipeline.in_rounds && job.pipeline.chunks > 1;
  const bool repeats = fold_microbatches && !keeps_sent && job.recipe.parallel.schedule != PipelineSchedule::gpipe;
  std::int64_t few = few_microbatches(job);
  for (; repeats && few < all; few = 2 * (few - rest) + rest) {
    FoldedRuns::Outcome outcome = runs.run(few);
    if (!outcome.growth) continue;
    FoldedJob folded = std::move(outcome.job);
    folded.step_time += (all - few) / period * *outcome.growth;
    folded.mean_end += (all - few) / period * *outcome.growth;
    folded.microbatches = all;
    folded.simulated = few;
    return folded;
  }
  FoldedJob folded = runs.run(all).job;
  folded.microbatches = folded.simulated = all;
  return folded;
}

}  // namespace memwall
