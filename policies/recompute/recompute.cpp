#include "policies/recompute/recompute.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "policies/trace/trace_edit.h"

namespace memwall {
namespace {

class RecomputeWriter {
 public:
  RecomputeWriter(const Trace& trace, const Dataflow& flow, const Machine& machine)
      : t_(trace), flow_(flow), edit_(trace, machine.host), clone_(trace.storages.size(), kNoStorage) {}

  Trace run(const RecomputePlan& plan) && {
    std::vector<const UnitPlan*> reruns;
    for (const UnitPlan& unit : plan.units) {
      drop(unit);
      if (!unit.rerun.empty()) reruns.push_back(&unit);
    }
    std::stable_sort(reruns.begin(), reruns.end(),
                     [](const UnitPlan* a, const UnitPlan* b) { return a->position < b->position; });
    for (const UnitPlan* unit : reruns) rerun(*unit);
    for (StorageId s = 0; s < plan.kept_until.size(); ++s) {
      const OpId free_op = flow_.free(s);
      if (plan.kept_until[s] == 0 || free_op >= plan.kept_until[s]) continue;
      leave_out(free_op);
      free(s, s, {plan.kept_until[s], false});
    }
    return std::move(edit_).apply();
  }

 private:
  bool is_read_by_backward(const UnitPlan& unit, StorageId s) const {
    return !unit.rerun.empty() && flow_.touches(s).back().op >= unit.position;
  }

  // Frees what the unit drops after its last use in forward.
  void drop(const UnitPlan& unit) {
    for (const StorageId s : unit.dropped) {
      const auto touches = flow_.touches(s);
      const bool again = is_read_by_backward(unit, s);
      OpId last = touches.front().op;
      for (const Touch& touch : touches)
        if (!again || touch.op < unit.position) last = touch.op;
      while (last + 1 < t_.ops.size() && t_.ops[last + 1].graph_member) ++last;
      free(s, s, {last, true});
      if (!again) leave_out(flow_.free(s));
    }
  }

  // The call is gone, the host time before it is not.
  void leave_out(OpId id) {
    const Op& op = t_.ops[id];
    if (op.host_gap.count() == 0) return edit_.remove(id);
    Op mark;
    mark.phase = op.phase;
    mark.thread = op.thread;
    mark.host_gap = op.host_gap;
    edit_.replace(id, mark);
  }

  void append(const Op& op, std::vector<Use> uses = {}) {
    edit_.insert_complete({unit_->position, false}, op, std::move(uses));
  }

  // Frees `s` as its original was freed.
  void free(StorageId original, StorageId s, InsertionPoint point) {
    Op op;
    op.kind = OpKind::free;
    op.target = s;
    op.stream = t_.storages[original].stream;
    const OpId alloc = flow_.alloc(original);
    const Op& neighbour = t_.ops[point.op];
    op.thread = neighbour.graph_member || neighbour.placed ? t_.ops[alloc].thread : neighbour.thread;
    op.phase = neighbour.phase;
    op.module = neighbour.module;
    op.origin = Origin::modelled;
    op.added = true;
    if (const OpId was = flow_.free(original); was != kNoOp) op.host_cost = t_.ops[was].host_cost;
    edit_.insert_complete(point, op);
  }

  StorageId make_clone(StorageId s) {
    Storage storage = t_.storages[s];
    if (storage.preexisting) storage.kind = StorageKind::workspace;
    storage.preexisting = false;
    edit_.tables().storages.push_back(storage);
    clone_[s] = static_cast<StorageId>(edit_.tables().storages.size() - 1);
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
    unit_ = &unit;
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
        put_back(s, clone_[s]);
      else
        free(s, clone_[s], {unit.position, false});
      clone_[s] = kNoStorage;
    }
    join_streams(unit, streams);
  }

  // Backward reads, and frees, what the re-run made.
  void put_back(StorageId s, StorageId clone) {
    for (const Touch& touch : flow_.touches(s))
      if (touch.op >= unit_->position) edit_.repoint(touch.op, s, clone);
    edit_.repoint(flow_.free(s), s, clone);
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
      if (writer != kNoOp && std::binary_search(unit.rerun.begin(), unit.rerun.end(), writer))
        use.storage = clone_[use.storage];
    }
    for (Use& use : uses)
      if (use.access == Access::write) use.storage = clone_[use.storage];
    Op op = original;
    op.phase = Phase::recompute;
    op.thread = thread_;
    op.source = id;
    op.host_gap += take_gap();
    append(op, std::move(uses));
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
        op.target = events_[op.target] = edit_.builder().add_event();
        return repeat_call(op);
      case OpKind::event_wait:
        if (!events_.contains(op.target)) break;  // recorded before the unit: long since waited for
        op.target = events_[op.target];
        return repeat_call(op);
      case OpKind::host_work:
        op.source = id;
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
      const std::uint32_t event = edit_.builder().add_event();
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
    op.host_cost = edit_.costs().event_call;
    append(op);
  }

  const Trace& t_;
  const Dataflow& flow_;
  TraceEdit edit_;
  std::vector<StorageId> clone_;    // of a storage, during its unit's re-run
  const UnitPlan* unit_ = nullptr;  // of the present re-run
  std::uint16_t thread_ = 0;        // of the present re-run
  Duration gap_{};                  // host time of calls that the re-run leaves out
  std::vector<StorageId> made_;
  std::set<StorageId> outputs_;
  std::map<std::uint32_t, std::uint32_t> events_;
};

}  // namespace

Trace with_recompute(const Trace& trace, const Dataflow& flow, const RecomputePlan& plan, const Machine& machine) {
  return RecomputeWriter(trace, flow, machine).run(plan);
}

}  // namespace memwall
