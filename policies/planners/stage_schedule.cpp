#include "policies/planners/stage_schedule.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "policies/recompute/rerun_gathers.h"
#include "policies/trace/rerun_rules.h"

namespace memwall {
namespace {

// A schedule's re-runs, and the drops that they allow.
class ScheduledReruns {
 public:
  ScheduledReruns(const StepProfile& profile, const ParameterGathers& gathers, const RotorPass& pass, OpId backward,
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

}  // namespace

void add_schedule(const StepProfile& profile, const ParameterGathers& gathers, const RotorPass& pass, OpId backward,
                  const std::vector<RotorStep>& steps, MemoryPlan& plan) {
  ScheduledReruns(profile, gathers, pass, backward, steps, plan);
}

}  // namespace memwall
