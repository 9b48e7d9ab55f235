// Random plans of nested and repeated re-runs for property tests, valid by the way they are made: what backward or
// another re-run reads and is absent is made again right before, from what is there, from what another re-run makes for
// it, or from further back; and is dropped again at any time.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "policies/trace/dataflow.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

class RandomReruns {
 public:
  // Both must outlive it. REQUIRES: no content from outside of a pass is overwritten in it (random_step.h).
  RandomReruns(const Trace& trace, const Dataflow& flow) : t_(trace), flow_(flow) {}

  MemoryPlan run() {
    for (const Pass& pass : passes(t_)) {
      choose_dropped(pass);
      for (OpId id = pass.backward; id < pass.end; ++id) play(id);
      order_ = 0;
      for (auto& [storage, state] : states_)
        if (state.present && flow_.free(storage) < pass.end) drop(storage, {pass.end - 1, true, order_++});
    }
    for (auto& [storage, state] : states_) plan_.storages.push_back(std::move(state.decision));
    return std::move(plan_);
  }

 private:
  struct State {
    StorageDecision decision;
    bool present = false;
  };

  void choose_dropped(const Pass& pass) {
    for (StorageId s = 0; s < t_.storages.size(); ++s) {
      if (!is_forward_intermediate(t_, flow_, pass, s) || *rc::gen::inRange(0, 3) == 0) continue;
      OpId last = 0;
      for (const Touch& touch : flow_.touches(s))
        if (touch.op < pass.backward) last = touch.op;
      State& state = states_[s];
      state.decision.storage = s;
      state.decision.drops.push_back({{last, true, 0}});
    }
  }

  void drop(StorageId s, const PlanPoint& at) {
    states_[s].decision.drops.push_back({at});
    states_[s].present = false;
  }

  bool is_absent(StorageId s) const {
    const auto found = states_.find(s);
    return found != states_.end() && !found->second.present;
  }

  void play(OpId id) {
    order_ = 0;
    const Op& op = t_.ops[id];
    if (op.kind == OpKind::free && states_.contains(op.target)) states_[op.target].present = false;
    const std::size_t pinned = pinned_.size();
    for (const Use& use : t_.uses_of(op)) pinned_.push_back(use.storage);
    for (const Use& use : t_.uses_of(op))
      if (is_absent(use.storage)) bring(use.storage, id);
    pinned_.resize(pinned);
    order_ = 0;
    if (!t_.uses_of(op).empty()) drop_some({id, true, 0});
  }

  // Of what no re-run or op waits for.
  void drop_some(PlanPoint at) {
    for (auto& [storage, state] : states_)
      if (state.present && std::find(pinned_.begin(), pinned_.end(), storage) == pinned_.end() &&
          *rc::gen::inRange(0, 3) == 0)
        drop(storage, {at.op, at.after, order_++});
  }

  void bring(StorageId target, OpId at) {
    std::set<OpId> ops;
    std::set<StorageId> inputs;
    std::vector<OpId> open;
    const auto want = [&](StorageId s, std::uint32_t version) {
      for (std::uint32_t v = 1; v <= version; ++v)
        if (ops.insert(flow_.writer(s, v)).second) open.push_back(flow_.writer(s, v));
    };
    want(target, flow_.version_before(target, at));
    while (!open.empty()) {
      const OpId id = open.back();
      open.pop_back();
      for (const Use& use : t_.uses_of(t_.ops[id])) {
        if (t_.storages[use.storage].preexisting) continue;
        if (use.access == Access::write)
          want(use.storage, use.version - 1);
        else if (flow_.version_before(use.storage, at) == use.version && use.storage != target &&
                 (!is_absent(use.storage) || *rc::gen::arbitrary<bool>()))
          inputs.insert(use.storage);
        else
          want(use.storage, use.version);
      }
    }
    std::erase_if(inputs, [&](StorageId s) { return ops.contains(flow_.writer(s, flow_.version_before(s, at))); });
    const std::size_t pinned = pinned_.size();
    pinned_.insert(pinned_.end(), inputs.begin(), inputs.end());
    for (const StorageId input : inputs)
      if (is_absent(input)) bring(input, at);
    plan_.reruns.push_back({{at, false, order_++}, {ops.begin(), ops.end()}});
    states_[target].present = true;
    pinned_.resize(pinned);
    pinned_.push_back(target);
    drop_some({at, false, 0});
    pinned_.pop_back();
  }

  const Trace& t_;
  const Dataflow& flow_;
  std::map<StorageId, State> states_;
  std::vector<StorageId> pinned_;
  std::uint32_t order_ = 0;
  MemoryPlan plan_;
};

}  // namespace memwall
