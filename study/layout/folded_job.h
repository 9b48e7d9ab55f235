// A job of many GPUs simulated quickly: each pass of a chunk is one kernel whose time was found by simulating its
// operators alone; passes, messages, reductions and the update then run on the engine as they do written out. Of many
// micro-batches so few are run that further ones only repeat, which is found, not assumed: on all ranks the last forward
// passes must begin at equal distances, else twice as many are run.
//
// Memory is of the allocator `ideal` (bytes). What differs from the job written out: a pass takes as long wherever it
// stands, and what the host does beside it is in one piece.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/workload/generate/parallel/pass_events.h"
#include "sim/machine/rank_machine.h"
#include "sim/values_by_key.h"
#include "study/layout/chunk_costs.h"

namespace memwall {

struct PassPath;

struct FoldedStage {
  std::uint32_t rank = 0;     // its number in the job
  std::uint32_t ranks = 1;    // that are alike
  Bytes peak = 0;             // of the device's memory
  BytesByKind peak_by_kind{};
  Duration passes{};          // forward and backward passes, tensor-parallel communication within them included
};

struct FoldedJob {
  Duration step_time{};
  Duration mean_end{};              // over the programs of the job, of when each one's work ends: mean_step() of a run
  std::vector<FoldedStage> stages;  // by rank of the pipeline
  std::int64_t microbatches = 1, simulated = 1;
  double flops = 0;  // of a step, per rank of the whole job, without what is computed again
  std::uint64_t ops = 0;

  // The stage that needs most memory; the one whose passes take longest.
  std::size_t fullest() const;
  std::size_t slowest() const;
};

// Costs of chunks that were looked at: layouts have many in common. May be used by several threads at once.
class ChunkCostCache {
 public:
  // The machine outlives it. `scale`: JobPricing::scale. `programs`: of the same model and recipe but for the layout,
  // shared with caches of other machines.
  explicit ChunkCostCache(const Machine& machine, std::vector<ScaleFactors> scale = {},
                          std::shared_ptr<ChunkPrograms> programs = std::make_shared<ChunkPrograms>())
      : pricing_{machine, std::move(scale)}, shared_sizes_(shared_sizes(machine)), programs_(std::move(programs)) {}
  const ChunkCosts& of(const ParallelJob& job, std::int64_t rank, std::int64_t chunk);
  // What its passes allocate and free; nothing where marks cannot stand for them (chunk_events).
  const std::optional<ChunkEvents>& events_of(const ParallelJob& job, std::int64_t rank, std::int64_t chunk);
  // What its passes wait for (study/layout/pass_path.h).
  const PassPath& path_of(const ParallelJob& job, std::int64_t rank, std::int64_t chunk);
  const JobPricing& pricing() const { return pricing_; }
  ChunkPrograms& programs() { return *programs_; }
  const Machine& machine() const { return pricing_.machine; }

 private:
  std::string key_of(const ParallelJob& job, std::int64_t rank, std::int64_t chunk) const;

  const JobPricing pricing_;
  const std::vector<std::uint32_t> shared_sizes_;
  const std::shared_ptr<ChunkPrograms> programs_;
  // chunk_places(), which looks at every rank of a stage, once for each layout of ranks.
  ValuesByKey<std::array<std::int64_t, 5>, std::string> places_;
  ValuesByKey<std::string, ChunkCosts> costs_;
  ValuesByKey<std::string, std::optional<ChunkEvents>> events_;
  ValuesByKey<std::string, std::shared_ptr<const PassPath>> paths_;
};

// So few micro-batches that each rank is in the middle of its schedule for as many as are compared; as many of the last
// group of an interleaved pipeline as there are in all. May be more than there are.
std::int64_t few_microbatches(const ParallelJob& job);
// Micro-batches after which the schedule repeats.
std::int64_t schedule_period(const PipelineShape& shape);

// Throws what generators and the simulation throw. `fold_microbatches` false: all of them are run.
FoldedJob folded_job(const ParallelJob& job, ChunkCostCache& costs, bool fold_microbatches = true);

}  // namespace memwall
