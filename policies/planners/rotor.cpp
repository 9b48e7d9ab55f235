// The fastest persistent schedule of forward units that keeps to a budget: kept whole, or kept as a checkpoint, or
// computed again and again from one.
//
// Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova 2019, "Optimal checkpointing for heterogeneous chains: how to train
// deep neural networks with limited memory" (Inria RR-9302, arXiv 1911.13214), written from public descriptions of the
// programme. That is rotor_chain.h, with its deviations; rotor_stages.h finds stages with times and bytes in the trace.
// Here the schedule becomes a plan: forward steps before the first backward are the program's own, each later one is a
// re-run of the unit's ops right before the backward that it is for.
// Deviations: what an op reads beyond the unit before it stays; forward right before its own backward makes only what
// backward still reads; a re-run gives back what nobody wants at its end, not while it runs; of more than 160 units
// neighbours are joined; units with a collective, a node of a CUDA graph or an op that the host waits for are kept.
// Only times of kernels count, not those of collectives. Parameters that sharding gathers are no part of a unit: a
// re-run reads what backward gathers, or gathers them once more (policies/recompute/rerun_gathers.h).
#include "policies/planners/rotor.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "policies/planners/kept_units.h"
#include "policies/planners/planner.h"
#include "policies/planners/rotor_stages.h"
#include "policies/profile/planned_memory.h"
#include "policies/recompute/rerun_gathers.h"
#include "policies/trace/rerun_rules.h"

namespace memwall {
namespace {

constexpr std::size_t kMostUnits = 160;

// A schedule's re-runs, and the drops that they allow.
class RotorPlan {
 public:
  RotorPlan(const StepProfile& profile, const ParameterGathers& gathers, const RotorPass& pass, OpId backward,
            const std::vector<RotorStep>& steps, MemoryPlan& plan)
      : t_(profile.trace()),
        flow_(profile.flow()),
        p_(profile),
        gathers_(gathers),
        pass_(pass),
        plan_(plan),
        backward_(backward) {
    add_program();
    add_reruns(steps);
    for (auto& [storage, events] : events_) decide(storage, events);
  }

 private:
  // Something makes a storage's content, or uses it.
  struct Event {
    OpId op = kNoOp;
    bool by_program = true;   // else by a re-run right before `op`
    std::uint32_t order = 0;  // of the re-run
    bool makes = false;
    auto key() const { return std::tuple(op, by_program, order, makes); }
  };

  void add_program() {
    for (const RotorUnit& unit : pass_.units)
      for (const auto* storages : {&unit.saved, &unit.idle, &unit.output})
        for (const StorageId s : *storages) {
          std::vector<Event>& events = events_[s];
          if (!events.empty()) continue;  // both saved and output
          for (const Touch& touch : flow_.touches(s)) events.push_back({touch.op, true, 0, events.empty()});
        }
  }

  void add_reruns(const std::vector<RotorStep>& steps) {
    using Kind = RotorStep::Kind;
    auto backward =
        std::find_if(steps.begin(), steps.end(), [](const RotorStep& s) { return s.kind == Kind::backward; });
    std::uint32_t order = 0;
    for (auto step = backward; step != steps.end(); ++step) {
      if (step->kind == Kind::backward) continue;
      const auto next = std::find_if(step, steps.end(), [](const RotorStep& s) { return s.kind == Kind::backward; });
      const OpId at = pass_.units[next->stage].backward;
      if (at != at_) order = 0;
      at_ = at;
      rerun(*step, next->stage == step->stage, {at, false, 2 * order++});
    }
  }

  // `last`: its backward is next.
  void rerun(const RotorStep& step, bool last, const PlanPoint& at) {
    const RotorUnit& unit = pass_.units[step.stage];
    std::vector<StorageId> wanted;
    if (!last) wanted = unit.output;
    if (step.kind == RotorStep::Kind::forward_saving)
      for (const StorageId s : unit.saved)
        if (flow_.touches(s).back().op >= unit.backward) wanted.push_back(s);
    PlannedRerun planned{at, *ops_making(p_, gathers_, unit, wanted)};
    if (planned.ops.empty()) return;
    run_again_.insert(unit.ops.begin(), unit.ops.end());
    for (const OpId id : planned.ops)
      for (const Use& use : t_.uses_of(t_.ops[id])) {
        const auto events = events_.find(use.storage);
        if (events == events_.end()) continue;
        if (use.access == Access::write) {
          if (use.version == flow_.version_before(use.storage, at.op))
            events->second.push_back({at.op, false, at.order, true});
        } else if (!std::binary_search(planned.ops.begin(), planned.ops.end(),
                                       flow_.writer(use.storage, use.version))) {
          events->second.push_back({at.op, false, at.order, false});
        }
      }
    // Parameters that forward has given back (sharding).
    for (const RepeatedGather& repeated :
         gathers_to_repeat(t_, gathers_, {planned.ops.begin(), planned.ops.end()}, at.op))
      planned.ops.push_back(repeated.gather);
    std::ranges::sort(planned.ops);
    plan_.reruns.push_back(std::move(planned));
  }

  // It is there from where it is made to the last use before it is made again. Only the first of all need not end with
  // a drop: it may last.
  void decide(StorageId s, std::vector<Event>& events) {
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.key() < b.key(); });
    std::vector<std::pair<Event, Event>> stays;  // first and last event
    for (std::size_t i = 0; i < events.size(); ++i) {
      const std::size_t first = i;
      while (i + 1 < events.size() && !events[i + 1].makes) ++i;
      if (i > first || first == 0) stays.emplace_back(events[first], events[i]);
    }
    const OpId freed = flow_.free(s);
    // What is kept although nobody reads it any more is dropped.
    const bool is_idle = stays.size() == 1 && stays[0].second.op < backward_ &&
                         (freed >= backward_ || run_again_.contains(flow_.writer(s, 1)));
    if ((stays.size() < 2 && !is_idle) || freed < stays.front().second.op) return;
    StorageDecision d;
    d.storage = s;
    for (std::size_t i = 0; i < stays.size(); ++i)
      if (is_idle || i + 1 < stays.size() || freed < stays[i].second.op) d.drops.push_back({behind(stays[i].second)});
    plan_.storages.push_back(std::move(d));
  }

  PlanPoint behind(const Event& event) const {
    if (!event.by_program) return {event.op, false, event.order + 1};
    return {last_of_graph(t_, event.op), true, 0};
  }

  const Trace& t_;
  const Dataflow& flow_;
  const StepProfile& p_;
  const ParameterGathers& gathers_;
  const RotorPass& pass_;
  MemoryPlan& plan_;
  const OpId backward_;  // of the pass
  OpId at_ = kNoOp;
  std::set<OpId> run_again_;                        // ops of units that are
  std::map<StorageId, std::vector<Event>> events_;  // of what is of the chain
};

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
  const ParameterGathers gathers(profile.trace(), profile.flow());
  for (const ForwardChain& chain : forward_chains_of(profile)) {
    const RotorPass pass = rotor_pass(profile, gathers, chain, kMostUnits);
    if (pass.units.empty()) continue;
    if (const auto schedule = schedule_of(pass, budget, slots))
      RotorPlan(profile, gathers, pass, chain.pass.backward, schedule->steps, plan);
  }
  return plan;
}

}  // namespace memwall
