#include "policies/planners/saved_values.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "policies/recompute/rerun_gathers.h"
#include "policies/trace/rerun_rules.h"
#include "policies/trace/saved_storages.h"

namespace memwall {
namespace {

class SavedValuesPlan {
 public:
  SavedValuesPlan(const StepProfile& profile, const ForwardGraph& graph, const ValueCut& cut, MemoryPlan& plan)
      : t_(profile.trace()),
        flow_(profile.flow()),
        g_(graph),
        gathers_(t_, flow_),
        saved_storages_(t_, flow_),
        plan_(plan),
        kept_(cut.saved),
        stays_(graph.values.size()) {}

  void add() && {
    std::map<OpId, std::vector<std::size_t>> wanted;  // by the point of the re-run
    std::vector<std::size_t> idle;                    // nobody reads them any more
    for (std::size_t v = 0; v < g_.values.size(); ++v) {
      const GraphValue& value = g_.values[v];
      if (!value.is_last || kept_[v]) continue;
      if (!value.may_go)
        kept_[v] = !value.backward.empty();  // it stays whatever is decided
      else if (value.backward.empty())
        idle.push_back(v);
      else
        wanted[point_before(value.backward.front())].push_back(v);
    }
    for (const auto& [at, values] : wanted) make_again(at, values);
    std::set<std::size_t> leaves(idle.begin(), idle.end());
    for (const auto& [at, values] : wanted)
      for (const std::size_t v : values)
        if (!kept_[v]) leaves.insert(v);
    for (std::size_t v = 0; v < g_.values.size(); ++v) decide(v, leaves.contains(v));
    for (const auto& [storage, until] : kept_until_) plan_.keeps.push_back({storage, {until, false, 0}});
  }

 private:
  // It is there from the re-run right before op `at` to the last that starts from it, or until the program frees it.
  struct Stay {
    OpId at = kNoOp, last = 0;
  };

  OpId point_before(OpId reader) const { return insertion_point(t_, saved_storages_.first_of_node(reader)); }

  bool is_there(std::size_t v, OpId at) const {
    if (stays_[v].empty()) return kept_[v];
    const OpId freed = flow_.free(g_.values[v].storage);
    return freed < stays_[v].back().at || freed >= at;
  }

  void make_again(OpId at, const std::vector<std::size_t>& values) {
    std::vector<std::size_t> missing;
    for (const std::size_t v : values)
      if (!is_there(v, at)) missing.push_back(v);
    if (missing.empty()) return;
    if (const std::optional<std::set<std::size_t>> ops = ops_for(at, missing)) return rerun(at, *ops);
    for (const std::size_t v : missing) kept_[v] = true;
  }

  // Of the forward, to have the values at `at`: what makes them, what makes what that reads, and so on. Where a storage
  // is made again all that reads it in the re-run reads what is made there.
  std::optional<std::set<std::size_t>> ops_for(OpId at, std::vector<std::size_t> open) const {
    std::set<std::size_t> ops;
    std::set<StorageId> made;
    for (bool grows = true; grows;) {
      while (!open.empty()) {
        const GraphValue& value = g_.values[open.back()];
        open.pop_back();
        if (!ops.insert(value.maker).second) continue;
        const GraphOp& op = g_.ops[value.maker];
        if (!op.is_repeatable) return std::nullopt;
        for (const std::size_t v : op.makes) made.insert(g_.values[v].storage);
        for (const std::size_t v : op.reads)
          if (!is_there(v, at)) open.push_back(v);
      }
      for (const std::size_t op : ops)
        for (const std::size_t v : g_.ops[op].reads)
          if (made.contains(g_.values[v].storage) && !ops.contains(g_.values[v].maker)) open.push_back(v);
      grows = !open.empty();
    }
    return ops;
  }

  void rerun(OpId at, const std::set<std::size_t>& ops) {
    std::set<OpId> ids;
    for (const std::size_t op : ops) {
      ids.insert(g_.ops[op].id);
      for (const std::size_t v : g_.ops[op].reads)
        if (!ops.contains(g_.values[v].maker)) start_from(v, at);
    }
    for (const std::size_t op : ops)
      for (const std::size_t v : g_.ops[op].makes)
        if (g_.values[v].is_last && !is_there(v, at)) stays_[v].push_back({at});
    PlannedRerun planned{{at, false, 0}, {ids.begin(), ids.end()}};
    for (const RepeatedGather& repeated : gathers_to_repeat(t_, gathers_, ids, at))
      planned.ops.push_back(repeated.gather);
    std::ranges::sort(planned.ops);
    plan_.reruns.push_back(std::move(planned));
  }

  void start_from(std::size_t v, OpId at) {
    const StorageId s = g_.values[v].storage;
    if (!stays_[v].empty())
      stays_[v].back().last = at;
    else if (flow_.free(s) < at)
      kept_until_[s] = std::max(kept_until_[s], at);
  }

  // `leaves`: behind its last use in forward. What is made again behind the program's free of it is dropped behind the
  // last re-run that starts from it.
  void decide(std::size_t v, bool leaves) {
    const StorageId s = g_.values[v].storage;
    StorageDecision d;
    d.storage = s;
    if (leaves) {
      OpId last = g_.ops[g_.values[v].maker].id;
      for (const Touch& touch : flow_.touches(s))
        if (touch.op < g_.pass.backward) last = touch.op;
      d.drops.push_back({{last_of_graph(t_, last), true, 0}});
    }
    for (const Stay& stay : stays_[v])
      if (stay.last > stay.at && flow_.free(s) < stay.at) d.drops.push_back({{stay.last, false, 1}});
    if (!d.drops.empty()) plan_.storages.push_back(std::move(d));
  }

  const Trace& t_;
  const Dataflow& flow_;
  const ForwardGraph& g_;
  const ParameterGathers gathers_;
  const SavedStorages saved_storages_;
  MemoryPlan& plan_;
  std::vector<bool> kept_;                // by value: from forward
  std::vector<std::vector<Stay>> stays_;  // by value: where it is made again
  std::map<StorageId, OpId> kept_until_;  // what is kept, and given back earlier by the program: until this op
};

}  // namespace

void keep_saved_values(const StepProfile& profile, const ForwardGraph& graph, const ValueCut& cut, MemoryPlan& plan) {
  SavedValuesPlan(profile, graph, cut, plan).add();
}

std::string unmerged_reruns(const StepProfile&, const MemoryPlan& plan) {
  if (plan.reruns.empty()) return "";
  return "torch.compile merges what runs again with what reads it; here each is a kernel of its own.";
}

}  // namespace memwall
