// The fastest persistent schedule of forward units that keeps to a budget: kept whole, or kept as a checkpoint, or
// computed again and again from one.
//
// Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova 2019, "Optimal checkpointing for heterogeneous chains: how to train
// deep neural networks with limited memory" (Inria RR-9302, arXiv 1911.13214), written from public descriptions of the
// programme. That is rotor_chain.h, with its deviations; rotor_stages.h finds stages with times and bytes in the trace,
// stage_schedule.h makes a plan of the schedule.
// Deviations: what an op reads beyond the unit before it stays; forward right before its own backward makes only what
// backward still reads; a re-run gives back what nobody wants at its end, not while it runs; of more than 160 units
// neighbours are joined; units with a collective, a node of a CUDA graph or an op that the host waits for are kept.
// Only times of kernels count, not those of collectives. Parameters that sharding gathers are no part of a unit: a
// re-run reads what backward gathers, or gathers them once more (policies/recompute/rerun_gathers.h).
#include "policies/planners/rotor.h"

#include <algorithm>

#include "policies/planners/kept_units.h"
#include "policies/planners/planner.h"
#include "policies/planners/rotor_stages.h"
#include "policies/planners/stage_schedule.h"
#include "policies/profile/planned_memory.h"

namespace memwall {
namespace {

constexpr std::size_t kMostUnits = 160;

// What all stages may take together, at the most. A stage that never runs again has the program's own forward alone.
Bytes most_of(const RotorChain& chain) {
  const auto known = [](Bytes bytes) { return bytes < RotorStage::kNever ? std::max<Bytes>(0, bytes) : 0; };
  Bytes most = chain.input_passed;
  for (const RotorStage& stage : chain.stages)
    most += stage.saved + std::max(known(stage.while_saving), known(stage.first_saving)) + stage.gradient +
            stage.while_backward;
  return most;
}

// Within the budget, or what lives without the chain where that is more; else in the least memory that there is.
std::optional<RotorSchedule> schedule_of(const RotorPass& pass, Bytes budget, std::uint32_t slots) {
  const Bytes limit = std::max(budget, pass.most_beside) - pass.beside;
  if (limit > 0)
    if (auto schedule = RotorTable(pass.chain, limit, slots).schedule()) return schedule;
  Bytes most = most_of(pass.chain);
  std::optional<RotorSchedule> least;
  for (int i = 0; i < 3; ++i) {  // each time with finer slots
    const RotorTable table(pass.chain, most, slots);
    if (auto schedule = table.schedule()) least = std::move(schedule);
    most = table.least_memory().value_or(most);
  }
  return least;
}

const RegisterPlanner registered_rotor{
    {.name = "rotor",
     .sentence =
         "keeps, or computes again, what is optimal for a chain of units within a budget (Beaumont et al. 2019)",
     .parameters = {integer("slots", 500, {10, 5000}, "slots", "into which the budget is cut; sizes are rounded up.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const auto slots = static_cast<std::uint32_t>(arguments.integer("slots"));
       return [slots](const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&) {
         return rotor_plan(profile, budget.device, slots);
       };
     },
     .remark = kept_units}};

}  // namespace

MemoryPlan rotor_plan(const StepProfile& profile, Bytes budget, std::uint32_t slots) {
  MemoryPlan plan;
  if (PlannedMemory(profile).peak() <= budget) return plan;
  const ParameterGathers& gathers = profile.gathers();
  for (const ForwardChain& chain : forward_chains_of(profile)) {
    const RotorPass pass = rotor_pass(profile, gathers, chain, kMostUnits);
    if (pass.units.empty()) continue;
    if (const auto schedule = schedule_of(pass, budget, slots))
      add_schedule(profile, gathers, pass, chain.pass.backward, schedule->steps, plan);
  }
  return plan;
}

}  // namespace memwall
