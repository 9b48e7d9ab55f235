#include "study/layout/reserved_memory.h"

#include <memory>
#include <utility>

#include "models/hw/modelled_step.h"
#include "models/workload/generate/parallel/parallel_step.h"
#include "sim/engine/simulation.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/equal_places.h"
#include "study/device_budget.h"
#include "study/layout/reserved_job.h"
#include "study/layout/sharing_job.h"

namespace memwall {

namespace {

ReservedMemory most_of(const ReservedJob& job) {
  ReservedMemory most{.microbatches = job.microbatches};
  for (std::size_t stage = 0; stage < job.stages.size(); ++stage) {
    const ReservedStage& s = job.stages[stage];
    if (s.missing > 0) most.fits = false;
    if (stage > 0 && std::pair(s.missing, s.reserved) <= std::pair(most.missing, most.reserved)) continue;
    most.stage = stage;
    most.reserved = s.reserved;
    most.missing = s.missing;
  }
  return most;
}

ReservedMemory written_out(const LayoutRequest& request, const Layout& layout) {
  Recipe recipe = layout.recipe;
  recipe.batch = recipe.parallel.micro_batch * layout.outcome.simulated;
  recipe.parallel.global_batch = recipe.batch * recipe.data_parallel;
  const Machine& machine = *request.machine;
  const Trace trace = modelled_on(
      with_equal_places(parallel_step(request.job.model, recipe), shared_sizes(machine)), machine);
  const std::shared_ptr<const Machine> limited = with_device_bytes(machine, trace, request.budget);
  const RankMachine ranks = machine_of_ranks(*limited, trace);
  const SimulationResult result = simulate(trace, ranks, {});
  const auto device = static_cast<std::size_t>(machine.tier("hbm"));
  ReservedMemory most{.fits = result.fits, .microbatches = layout.outcome.simulated};
  const std::vector<FoldedStage>& stages = layout.outcome.stages;
  std::size_t stage = 0;  // programs of one follow each other, the first has its number
  for (std::size_t program = 0; program < ranks.views.size(); ++program) {
    if (stage + 1 < stages.size() && trace.rank_table[program].number == stages[stage + 1].rank) ++stage;
    const TierResult& tier = result.tiers[ranks.views[program].tier[device]];
    if (program > 0 && std::pair(tier.missing, tier.peak_reserved) <= std::pair(most.missing, most.reserved)) continue;
    most.stage = stage;
    most.reserved = tier.peak_reserved;
    most.missing = tier.missing;
  }
  return most;
}

}  // namespace

ReservedMemory reserved_memory(const LayoutRequest& request, const Layout& layout, ChunkCostCache& costs) {
  if (!layout.policy.empty()) {
    Recipe one = layout.recipe;
    one.parallel.global_batch /= one.data_parallel;
    const std::uint32_t replicas = std::exchange(one.data_parallel, 1);
    return reserved_of_sharing_job(parallel_job(request.job.model, one), replicas, *request.machine, request.budget);
  }
  const ParallelJob job = parallel_job(request.job.model, layout.recipe);
  if (const std::optional<ReservedJob> reserved = reserved_job(job, costs, request.budget, true, request.jobs))
    return most_of(*reserved);
  return written_out(request, layout);
}

}  // namespace memwall
