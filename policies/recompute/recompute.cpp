#include "policies/recompute/recompute.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

class RecomputeWriter {
 public:
  RecomputeWriter(const Trace& trace, const Dataflow& flow, const RecomputePlan& plan, const Machine& machine)
      : t_(trace),
        flow_(flow),
        machine_(machine),
        b_(TraceBuilder::like(trace)),
        replacement_(trace.storages.size(), kNoStorage),
        clone_(trace.storages.size(), kNoStorage),
        removed_(trace.ops.size(), false),
        new_id_(trace.ops.size(), kNoOp),
        end_of_(trace.ops.size(), kNoOp),
        last_on_thread_(trace.threads.size(), kNoOp) {
    for (const UnitPlan& unit : plan.units) place(unit);
    for (StorageId s = 0; s < plan.kept_until.size(); ++s) {
      const OpId free = flow.free(s);
      if (plan.kept_until[s] == 0 || free >= plan.kept_until[s]) continue;
      removed_[free] = true;
      at_[plan.kept_until[s]].late_frees.push_back(s);
    }
  }

  Trace run() && {
    auto next = at_.begin();
    std::vector<OpId> begins(t_.ops.size() + 1);
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      const Changes* changes = next != at_.end() && next->first == id ? &(next++)->second : nullptr;
      begins[id] = static_cast<OpId>(b_.trace().ops.size());
      if (changes != nullptr) {
        for (const UnitPlan* unit : changes->reruns) rerun(*unit);
        for (const StorageId s : changes->late_frees) free(s, s, id);
      }
      keep(id);
      if (changes != nullptr)
        for (const StorageId s : changes->early_frees) free(s, s, id);
      end_of_[id] = t_.ops[id].thread < last_on_thread_.size() ? last_on_thread_[t_.ops[id].thread] : kNoOp;
    }
    begins[t_.ops.size()] = static_cast<OpId>(b_.trace().ops.size());
    for (const Step& step : t_.steps) {
      const OpId first = step.first < t_.ops.size() ? new_id_[step.first] : begins[step.first];
      b_.trace().steps.push_back({step.name, first, begins[step.last]});
    }
    return std::move(b_).finish();
  }

 private:
  // What happens beside one op of the base trace.
  struct Changes {
    std::vector<const UnitPlan*> reruns;  // before it
    std::vector<StorageId> late_frees;    // before it, after the re-runs
    std::vector<StorageId> early_frees;   // after it
  };

  bool is_read_by_backward(const UnitPlan& unit, StorageId s) const {
    return !unit.rerun.empty() && flow_.touches(s).back().op >= unit.position;
  }

  void place(const UnitPlan& unit) {
    if (!unit.rerun.empty()) at_[unit.position].reruns.push_back(&unit);
    for (const StorageId s : unit.dropped) {
      const auto touches = flow_.touches(s);
      const bool again = is_read_by_backward(unit, s);
      OpId last = touches.front().op;
      for (const Touch& touch : touches)
        if (!again || touch.op < unit.position) last = touch.op;
      while (last + 1 < t_.ops.size() && t_.ops[last + 1].graph_member) ++last;
      at_[last].early_frees.push_back(s);
      if (!again) removed_[flow_.free(s)] = true;
    }
  }

  OpId append(const Op& op, std::span<const Use> uses = {}) {
    const OpId id = b_.append(op, uses);
    if (op.thread < last_on_thread_.size() && !op.placed && !op.graph_member) last_on_thread_[op.thread] = id;
    return id;
  }

  // An op of the base trace, renumbered; backward reads go to what the re-run made.
  void keep(OpId id) {
    Op op = t_.ops[id];
    if (removed_[id]) {
      // The call is gone, the host time before it is not.
      if (op.host_gap.count() == 0) return;
      Op mark;
      mark.phase = op.phase;
      mark.thread = op.thread;
      mark.host_gap = op.host_gap;
      new_id_[id] = append(mark);
      return;
    }
    if (op.kind == OpKind::free && replacement_[op.target] != kNoStorage) op.target = replacement_[op.target];
    if (op.kind == OpKind::hand_over) op.target = end_of_[op.target];
    if (op.source != kNoOp) op.source = new_id_[op.source];
    uses_.assign(t_.uses_of(t_.ops[id]).begin(), t_.uses_of(t_.ops[id]).end());
    for (Use& use : uses_)
      if (replacement_[use.storage] != kNoStorage) use = {replacement_[use.storage], TraceBuilder::kLatest, use.access};
    new_id_[id] = append(op, uses_);
  }

  // Frees `s` as its original was freed, beside base op `beside`.
  void free(StorageId original, StorageId s, OpId beside) {
    Op op;
    op.kind = OpKind::free;
    op.target = s;
    op.stream = t_.storages[original].stream;
    const OpId alloc = flow_.alloc(original);
    const Op& neighbour = t_.ops[beside];
    op.thread = neighbour.graph_member || neighbour.placed ? t_.ops[alloc].thread : neighbour.thread;
    op.phase = neighbour.phase;
    op.module = neighbour.module;
    op.origin = Origin::modelled;
    op.added = true;
    if (const OpId was = flow_.free(original); was != kNoOp) op.host_cost = t_.ops[was].host_cost;
    append(op);
  }

  StorageId make_clone(StorageId s) {
    Storage storage = t_.storages[s];
    if (storage.preexisting) storage.kind = StorageKind::workspace;
    storage.preexisting = false;
    b_.trace().storages.push_back(storage);
    clone_[s] = static_cast<StorageId>(b_.trace().storages.size() - 1);
    made_.push_back(s);
    return clone_[s];
  }

  // The clone's alloc, like the original's. `op`: null where the re-run has not come by it.
  void alloc_clone(StorageId s, const Op* like, const Op& beside) {
    Op op;
    if (like != nullptr) {
      op = *like;
      op.host_gap += take_gap();
    } else {
      op.kind = OpKind::alloc;
      op.stream = t_.storages[s].stream;
      op.module = beside.module;
      if (const OpId was = flow_.alloc(s); was != kNoOp) op.host_cost = t_.ops[was].host_cost;
    }
    op.target = make_clone(s);
    op.thread = thread_;
    op.phase = Phase::recompute;
    op.origin = Origin::modelled;
    op.added = true;
    append(op);
  }

  Duration take_gap() {
    const Duration gap = gap_;
    gap_ = {};
    return gap;
  }

  // The unit's host program once more, before base op `unit.position`.
  void rerun(const UnitPlan& unit) {
    thread_ = t_.ops[unit.position].thread;
    gap_ = {};
    made_.clear();
    events_.clear();
    outputs_.clear();
    for (const OpId id : unit.rerun)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::write) outputs_.insert(use.storage);
    const OpId first = first_alloc(unit), last = unit.rerun.back();
    const std::uint16_t source_thread = t_.ops[unit.rerun.front()].thread;
    std::set<std::uint16_t> streams;
    auto next = unit.rerun.begin();
    for (OpId id = first; id <= last; ++id) {
      const bool listed = next != unit.rerun.end() && *next == id;
      if (listed) {
        ++next;
        repeat(unit, id);
        if (runs_on_device(t_.ops[id].kind)) streams.insert(t_.ops[id].stream);
      } else if (t_.ops[id].thread == source_thread) {
        accompany(unit, id);
      }
    }
    for (const StorageId s : made_) {
      if (clone_[s] == kNoStorage) continue;  // freed by the re-run
      if (is_output(unit, s))
        replacement_[s] = clone_[s];
      else
        free(s, clone_[s], unit.position);
      clone_[s] = kNoStorage;
    }
    join_streams(unit, streams);
  }

  // Where the re-run begins: its first op, or the allocs right before that are its own.
  OpId first_alloc(const UnitPlan& unit) const {
    OpId first = unit.rerun.front();
    const std::uint16_t thread = t_.ops[first].thread;
    for (OpId id = first; id-- > 0;) {
      const Op& op = t_.ops[id];
      if (op.thread != thread) continue;
      if (op.kind != OpKind::alloc || !(outputs_.contains(op.target) || is_scratch(unit, op.target))) break;
      first = id;
    }
    return first;
  }

  // A workspace without dataflow of its own that forward gives back at once.
  bool is_scratch(const UnitPlan& unit, StorageId s) const {
    return flow_.touches(s).empty() && flow_.free(s) < unit.position;
  }

  // Is the storage one that backward goes on to read?
  bool is_output(const UnitPlan& unit, StorageId s) const {
    return std::binary_search(unit.dropped.begin(), unit.dropped.end(), s) && is_read_by_backward(unit, s);
  }

  void repeat(const UnitPlan& unit, OpId id) {
    const Op& original = t_.ops[id];
    std::vector<Use> uses(t_.uses_of(original).begin(), t_.uses_of(original).end());
    for (Use& use : uses) {
      if (use.access == Access::write) {
        if (clone_[use.storage] == kNoStorage) alloc_clone(use.storage, nullptr, original);
        continue;
      }
      const OpId writer = flow_.writer(use.storage, use.version);
      const bool again = writer != kNoOp && std::binary_search(unit.rerun.begin(), unit.rerun.end(), writer);
      use = {again ? clone_[use.storage] : use.storage, TraceBuilder::kLatest, Access::read};
    }
    for (Use& use : uses)
      if (use.access == Access::write) use = {clone_[use.storage], 0, Access::write};
    Op op = original;
    op.phase = Phase::recompute;
    op.thread = thread_;
    op.source = new_id_[id];
    op.host_gap += take_gap();
    append(op, uses);
  }

  // What stands between the re-run ops on the host: allocs, frees, events, host work.
  void accompany(const UnitPlan& unit, OpId id) {
    Op op = t_.ops[id];
    switch (op.kind) {
      case OpKind::alloc: {
        if (outputs_.contains(op.target) || is_scratch(unit, op.target)) return alloc_clone(op.target, &op, op);
        break;
      }
      case OpKind::free:
        if (clone_[op.target] == kNoStorage || is_output(unit, op.target)) break;
        op.target = std::exchange(clone_[op.target], kNoStorage);
        return repeat_call(op);
      case OpKind::event_record:
        op.target = events_[op.target] = b_.add_event();
        return repeat_call(op);
      case OpKind::event_wait:
        if (!events_.contains(op.target)) break;  // recorded before the unit: long since waited for
        op.target = events_[op.target];
        return repeat_call(op);
      case OpKind::host_work:
        op.source = new_id_[id];
        return repeat_call(op);
      case OpKind::mark:
        break;
      default:
        return;  // device work that nobody needs again, with the time of its call
    }
    gap_ += t_.ops[id].host_gap;  // the host still comes by here
  }

  void repeat_call(Op op) {
    op.thread = thread_;
    op.phase = Phase::recompute;
    op.host_gap += take_gap();
    op.added = op.kind != OpKind::host_work;
    append(op);
  }

  // Backward ops of other streams wait for the re-run.
  void join_streams(const UnitPlan& unit, const std::set<std::uint16_t>& writers) {
    std::set<std::uint16_t> readers;
    for (const StorageId s : unit.dropped)
      for (const Touch& touch : flow_.touches(s))
        if (touch.op >= unit.position && runs_on_device(t_.ops[touch.op].kind)) readers.insert(t_.ops[touch.op].stream);
    for (const std::uint16_t writer : writers) {
      if (readers.empty() || (readers.size() == 1 && readers.contains(writer))) continue;
      const std::uint32_t event = b_.add_event();
      event_call(OpKind::event_record, event, writer);
      for (const std::uint16_t reader : readers)
        if (reader != writer) event_call(OpKind::event_wait, event, reader);
    }
  }

  void event_call(OpKind kind, std::uint32_t event, std::uint16_t stream) {
    Op op;
    op.kind = kind;
    op.target = event;
    op.stream = stream;
    op.thread = thread_;
    op.phase = Phase::recompute;
    op.origin = Origin::modelled;
    op.added = true;
    op.host_cost = machine_.host.event_call;
    append(op);
  }

  const Trace& t_;
  const Dataflow& flow_;
  const Machine& machine_;
  TraceBuilder b_;
  std::map<OpId, Changes> at_;
  std::vector<StorageId> replacement_;  // of a dropped storage, once its content is back
  std::vector<StorageId> clone_;        // of a storage, during its unit's re-run
  std::vector<bool> removed_;
  std::vector<OpId> new_id_;  // of a base op
  std::vector<OpId> end_of_;  // of a base op: the last op on its thread, what was put after it included
  std::vector<OpId> last_on_thread_;
  std::vector<Use> uses_;
  std::uint16_t thread_ = 0;  // of the present re-run
  Duration gap_{};            // host time of calls that the re-run leaves out
  std::vector<StorageId> made_;
  std::set<StorageId> outputs_;
  std::map<std::uint32_t, std::uint32_t> events_;
};

}  // namespace

Trace with_recompute(const Trace& trace, const Dataflow& flow, const RecomputePlan& plan, const Machine& machine) {
  return RecomputeWriter(trace, flow, plan, machine).run();
}

}  // namespace memwall
