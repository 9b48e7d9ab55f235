#include "policies/sharding/zero_gather_plan.h"

#include <algorithm>
#include <map>

#include "policies/sharding/zero_buckets.h"
#include "policies/trace/module_blocks.h"

namespace memwall {
namespace {

class Planner {
 public:
  Planner(const Trace& trace, const ZeroAnalysis& analysis, const ZeroSettings& settings)
      : t_(trace),
        analysis_(analysis),
        settings_(settings),
        is_parameter_(trace.storages.size(), false),
        blocks_(module_paths(), BlockRule::alike) {
    for (const StorageId id : analysis.parameters) is_parameter_[id] = true;
  }

  GatherPlan run() {
    collect_ops();
    assign_units();
    collect_executions();
    number_turns();
    collect_lifetimes();
    std::set<std::string> units;
    for (const UnitExecution& execution : plan_.executions) units.insert(execution.unit);
    plan_.units = units.size();
    return std::move(plan_);
  }

 private:
  std::set<std::string> module_paths() const {
    std::set<std::string> paths;
    if (!t_.knowledge.modules) return paths;
    std::set<StringId> seen;
    for (const Op& op : t_.ops)
      if (op.module != 0 && seen.insert(op.module).second) paths.insert(t_.strings[op.module]);
    return paths;
  }

  std::vector<StorageId> parameters_of(const Op& op) const {
    std::vector<StorageId> used;
    for (const Use& use : t_.uses_of(op))
      if (is_parameter_[use.storage]) used.push_back(use.storage);
    return used;
  }

  void collect_ops() {
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      const Op& op = t_.ops[id];
      if (op.phase == Phase::optimizer || std::binary_search(analysis_.updates.begin(), analysis_.updates.end(), id))
        continue;
      if (!parameters_of(op).empty()) ops_.push_back(id);
    }
  }

  bool has_module(const Op& op) const { return t_.knowledge.modules && op.module != 0; }

  // The outermost repeated block that the op's module is in, else the module itself.
  std::string module_unit(const Op& op) const {
    const std::string& path = t_.strings[op.module];
    const std::string block = blocks_.of(path);
    return block.empty() ? path : block;
  }

  // Each parameter belongs to the module of the op that uses it first; where no module is known, to a
  // bucket of parameters first used one after the other.
  void assign_units() {
    std::vector<StorageId> unnamed;
    std::vector<Bytes> sizes;
    for (const OpId id : ops_)
      for (const StorageId p : parameters_of(t_.ops[id])) {
        if (!unit_.emplace(p, "").second) continue;
        if (has_module(t_.ops[id])) {
          unit_[p] = module_unit(t_.ops[id]);
        } else {
          unnamed.push_back(p);
          sizes.push_back(t_.storages[p].bytes);
        }
      }
    const auto buckets = fill_buckets(sizes, settings_.bucket, BucketRule::never_exceed);
    for (std::size_t b = 0; b < buckets.size(); ++b)
      for (const std::size_t i : buckets[b]) unit_[unnamed[i]] = "bucket " + std::to_string(b);
    for (const auto& [p, unit] : unit_) members_[unit].push_back(p);
  }

  void collect_executions() {
    std::set<StorageId> needed;  // by the ops of the open execution
    const auto close = [&] {
      if (plan_.executions.empty()) return;
      add_own_parameters(plan_.executions.back(), needed);
      plan_.executions.back().parameters.assign(needed.begin(), needed.end());
    };
    for (const OpId id : ops_) {
      const Op& op = t_.ops[id];
      const std::vector<StorageId> used = parameters_of(op);
      const std::string unit = has_module(op) ? module_unit(op) : unit_.at(used.front());
      const bool after_update =
          !plan_.executions.empty() && analysis_.updates_between(plan_.executions.back().ops.back(), id);
      if (plan_.executions.empty() || plan_.executions.back().unit != unit ||
          plan_.executions.back().phase != op.phase || after_update) {
        close();
        UnitExecution execution;
        execution.unit = unit;
        execution.phase = op.phase;
        plan_.executions.push_back(std::move(execution));
        needed.clear();
      }
      UnitExecution& execution = plan_.executions.back();
      execution.ops.push_back(id);
      if (runs_on_device(op.kind)) execution.streams.insert(op.stream);
      needed.insert(used.begin(), used.end());
    }
    close();
  }

  Bytes bytes_of(const auto& parameters) const {
    Bytes sum = 0;
    for (const StorageId p : parameters) sum += t_.storages[p].bytes;
    return sum;
  }

  // A re-run that reads more than half of its unit is the unit's forward once more, which gathers all of it.
  void add_own_parameters(UnitExecution& execution, std::set<StorageId>& needed) const {
    const auto own = members_.find(execution.unit);
    if (own == members_.end()) return;
    execution.whole = execution.phase != Phase::recompute || 2 * bytes_of(needed) > bytes_of(own->second);
    if (!execution.whole) return;
    needed.insert(own->second.begin(), own->second.end());
  }

  void number_turns() {
    std::size_t turn = 0;
    const UnitExecution* open = nullptr;  // the backward that may go on
    for (UnitExecution& execution : plan_.executions) {
      const bool goes_on = open != nullptr && open->unit == execution.unit;
      if (execution.phase == Phase::recompute) {
        execution.turn = goes_on ? turn : 0;
      } else if (execution.phase == Phase::backward) {
        execution.turn = goes_on ? turn : ++turn;
        open = &execution;
      } else {
        open = nullptr;
      }
    }
  }

  void collect_lifetimes() {
    const std::vector<UnitExecution>& executions = plan_.executions;
    std::vector<Bytes> before(executions.size() + 1, 0);  // bytes of parameters of all executions before
    std::map<StorageId, std::size_t> open;                // index into lifetimes
    std::map<StorageId, std::size_t> rerun;               // execution that has re-run with it, until backward has come
    for (std::size_t v = 0; v < executions.size(); ++v) {
      for (const StorageId p : executions[v].parameters) {
        note_rerun(rerun, before, p, v);
        const auto found = open.find(p);
        if (found != open.end() && keeps(executions, before, plan_.lifetimes[found->second].last, v)) {
          plan_.lifetimes[found->second].last = v;
          continue;
        }
        open[p] = plan_.lifetimes.size();
        plan_.lifetimes.push_back({p, v, v});
      }
      before[v + 1] = before[v] + bytes_of(executions[v].parameters);
    }
  }

  void note_rerun(std::map<StorageId, std::size_t>& rerun, const std::vector<Bytes>& before, StorageId p,
                  std::size_t v) {
    const UnitExecution& now = plan_.executions[v];
    if (now.phase == Phase::recompute && now.whole && now.turn == 0) rerun[p] = v;
    const auto found = rerun.find(p);
    if (now.phase != Phase::backward || found == rerun.end()) return;
    const Bytes between = before[v] - before[found->second + 1];
    if (between > 0) plan_.distance_over_recompute = std::max(plan_.distance_over_recompute, between + 1);
    rerun.erase(found);
  }

  bool keeps(const std::vector<UnitExecution>& executions, const std::vector<Bytes>& before, std::size_t last,
             std::size_t now) const {
    const bool one_turn = executions[last].turn != 0 && executions[last].turn == executions[now].turn;
    // A unit's re-run right before its backward: FSDP2 and DeepSpeed gather once, before the two.
    const bool rerun_for_backward = executions[last].phase == Phase::recompute &&
                                    executions[now].phase == Phase::backward && before[now] == before[last + 1];
    return (one_turn || rerun_for_backward || before[now] - before[last + 1] < settings_.reuse_distance) &&
           !analysis_.updates_between(executions[last].ops.back(), executions[now].ops.front());
  }

  const Trace& t_;
  const ZeroAnalysis& analysis_;
  const ZeroSettings& settings_;
  std::vector<bool> is_parameter_;
  ModuleBlocks blocks_;
  std::vector<OpId> ops_;                  // outside of the optimizer, that use parameters
  std::map<StorageId, std::string> unit_;  // of each parameter
  std::map<std::string, std::vector<StorageId>> members_;
  GatherPlan plan_;
};

}  // namespace

GatherPlan plan_gathers(const Trace& trace, const ZeroAnalysis& analysis, const ZeroSettings& settings) {
  return Planner(trace, analysis, settings).run();
}

}  // namespace memwall
