// Optimizer states and activations go to the host for as long as the budget has no room for them.
//
// DeepCompile of DeepSpeed (deepspeed/compile/passes/offload_adam_states.py, commit 53a2835a, and
// offload_activation.py, commit 6c0f46b7, as read; their later planning by headroom, pull requests 8186 and 8255, as
// described):
//   headroom    what the budget leaves once everything that can leave has left.
//   which       nothing where the step keeps to the budget. Else activations stay as far as the headroom has room for
//               them, the last that forward makes first, and then states: what rests longest leaves. Where the peak is
//               above the budget without all of it, only what lowers the peak to that leaves.
//   out         states are copied from the beginning of forward on, an activation behind the op that makes it. Memory
//   is
//               given up as late as the budget allows, and what is next waits for the copy.
//   back        as early as the budget allows, in the order of need.
// Details from memory where those files do not say them; its order among activations is not known. Left out: its margin
// of a fifth of the GPU's memory (the budget is what is given, and the plan is held against the allocator), and its
// profiling. States are storages that live from step to step (there moments and fp32 parameters, one chunk each); those
// below min_bytes stay, as do such activations.
#include <algorithm>
#include <tuple>

#include "policies/planners/absence.h"
#include "policies/planners/host_transfer.h"
#include "policies/planners/planner.h"
#include "policies/trace/passes_in_turn.h"
#include "policies/trace/rerun_rules.h"

namespace memwall {
namespace {

struct DeepCompileSettings {
  bool activations = true, optimizer = true;
  Bytes min_bytes = 0;
};

class DeepCompile {
 public:
  DeepCompile(const StepProfile& profile, Bytes budget, const DeepCompileSettings& settings)
      : p_(profile), t_(profile.trace()), budget_(budget), settings_(settings), memory_(profile) {}

  MemoryPlan planned() {
    MemoryPlan plan;
    plan.tiers.push_back(to_host());
    if (memory_.peak() <= budget_) return plan;
    if (settings_.optimizer) find_states();
    if (settings_.activations) find_activations();
    for (const Chunk& chunk : chunks_) memory_.take_away(chunk.absence);
    // What cannot be kept to is no reason to move more than lowers the peak.
    budget_ = std::max(budget_, memory_.peak());
    keep_what_has_room();
    plan.storages = decisions_of(moved());
    return plan;
  }

 private:
  struct Chunk {
    Absence absence;
    OpId backward = kNoOp;  // it is given up before that
  };

  bool is_candidate(StorageId s) const { return t_.storages[s].bytes >= settings_.min_bytes && may_leave(p_, s); }

  OpId first_of_backward(OpId from, OpId otherwise) const {
    for (OpId op = from; op < otherwise; ++op)
      if (t_.ops[op].phase == Phase::backward) return op;
    return otherwise;
  }

  // In each step from its first op to the first use.
  void find_states() {
    std::vector<Step> steps = t_.steps;
    if (steps.empty()) steps.push_back({"", 0, static_cast<OpId>(t_.ops.size())});
    for (const Step& step : steps) {
      OpId first = step.first;
      while (first + 1 < step.last && !runs_on_device(t_.ops[first].kind)) ++first;
      for (StorageId s = 0; s < t_.storages.size(); ++s) {
        if (t_.storages[s].kind != StorageKind::optimizer_state || !t_.storages[s].preexisting || !is_candidate(s))
          continue;
        const auto touches = p_.flow().touches(s);
        const auto used =
            std::find_if(touches.begin(), touches.end(), [&](const Touch& touch) { return touch.op >= step.first; });
        if (used == touches.end() || used->op >= step.last || !used->reads) continue;
        add(s, {first, true, 0}, first, used->op, first_of_backward(first, used->op));
      }
    }
  }

  // Each from its last use in forward to its first in backward.
  void find_activations() {
    for (const Pass& pass : passes_in_turn(t_)) {
      std::vector<const Gap*> gaps;
      for (const Gap& gap : p_.gaps())
        if (!gap.wraps && gap.needs_content && gap.after >= pass.begin && gap.after < pass.backward &&
            gap.before >= pass.backward && is_candidate(gap.storage) &&
            is_saved_activation(t_, p_.flow(), pass, gap.storage))
          gaps.push_back(&gap);
      std::stable_sort(gaps.begin(), gaps.end(), [&](const Gap* a, const Gap* b) { return made(*a) < made(*b); });
      for (const Gap* gap : gaps) add(gap->storage, {made(*gap), true, 0}, gap->after, gap->before, pass.backward);
    }
  }

  OpId made(const Gap& gap) const {
    OpId op = gap.after;
    for (const Touch& touch : p_.flow().touches(gap.storage).first(gap.touch + 1))
      if (touch.writes) op = touch.op;
    return op;
  }

  void add(StorageId s, const PlanPoint& copied, OpId after, OpId before, OpId backward) {
    Gap gap;
    gap.storage = s;
    gap.after = after;
    gap.before = before;
    Chunk chunk{{gap, last_of_graph(t_, after) + 1, insertion_point(t_, before)}, backward};
    chunk.absence.copied = copied;
    if (chunk.absence.dropped < chunk.absence.fetched) chunks_.push_back(chunk);
  }

  // Those that leave first come first: states, then activations as forward makes them.
  void keep_what_has_room() {
    for (std::size_t i = chunks_.size(); i-- > 0;)
      if (memory_.stay(chunks_[i].absence, budget_)) chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  std::vector<Absence> moved() {
    for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk)
      memory_.drop_late(chunk->absence, budget_, chunk->backward);
    std::vector<Absence> all;
    for (const Chunk& chunk : chunks_) all.push_back(chunk.absence);
    std::stable_sort(all.begin(), all.end(), [](const Absence& a, const Absence& b) {
      return std::tuple(a.fetched, a.gap.before) < std::tuple(b.fetched, b.gap.before);
    });
    for (Absence& absence : all) memory_.fetch_early(absence, budget_);
    return all;
  }

  const StepProfile& p_;
  const Trace& t_;
  Bytes budget_;
  const DeepCompileSettings settings_;
  AbsentMemory memory_;
  std::vector<Chunk> chunks_;
};

const RegisterPlanner registered_deepcompile{
    {.name = "deepcompile",
     .sentence =
         "keeps optimizer states and activations on the host while the budget has no room for them (DeepSpeed's "
         "DeepCompile)",
     .parameters = {choices("what", "optimizer+activations", {"optimizer", "activations"}, "what may leave"),
                    bytes("min_bytes", "1MiB", 0, "smaller storages stay.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       DeepCompileSettings settings{false, false, arguments.bytes("min_bytes")};
       for (const std::string& what : arguments.list("what"))
         (what == "optimizer" ? settings.optimizer : settings.activations) = true;
       return [settings](const StepProfile& profile, const Budget& budget, const Machine& machine, const Pricer&) {
         require_host("deepcompile", machine);
         return DeepCompile(profile, budget.device, settings).planned();
       };
     }}};

}  // namespace
}  // namespace memwall
