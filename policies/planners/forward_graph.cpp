#include "policies/planners/forward_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "policies/trace/parameter_gathers.h"
#include "policies/trace/segments.h"

namespace memwall {
namespace {

class GraphMaker {
 public:
  GraphMaker(const StepProfile& profile, const Pass& pass)
      : p_(profile), t_(profile.trace()), flow_(profile.flow()), gathers_(t_, flow_) {
    graph_.pass = pass;
    end_ = pass.backward;
    for (OpId id = pass.backward; id < pass.end; ++id)
      if (t_.ops[id].phase == Phase::backward || t_.ops[id].phase == Phase::recompute) end_ = id;
  }

  ForwardGraph run() && {
    for (const OpId id : forward_ops(t_, graph_.pass))
      if (t_.ops[id].use_count > 0) add(id);
    for (GraphValue& value : graph_.values) finish(value);
    return std::move(graph_);
  }

 private:
  using Key = std::pair<StorageId, std::uint32_t>;

  void add(OpId id) {
    const Op& op = t_.ops[id];
    const std::size_t number = graph_.ops.size();
    GraphOp& added = graph_.ops.emplace_back();
    added.id = id;
    added.type = partitioner_operator(t_, op);
    added.is_repeatable =
        (op.kind == OpKind::kernel || op.kind == OpKind::memset || (op.kind == OpKind::copy && op.from == op.to)) &&
        !op.graph_member && !op.placed && op.wait_for == WaitFor::nothing;
    for (const Use& use : t_.uses_of(op)) {
      const bool writes = use.access == Access::write;
      const std::uint32_t read = writes ? use.version - 1 : use.version;
      if (!is_forward_intermediate(t_, flow_, graph_.pass, use.storage)) {
        if (writes || !stays(use.storage, read)) added.is_repeatable = false;
      } else if (read > 0) {
        note_read(added, number, {use.storage, read});
      }
    }
    for (const Use& use : t_.uses_of(op)) {
      if (use.access != Access::write || !is_forward_intermediate(t_, flow_, graph_.pass, use.storage)) continue;
      known_[{use.storage, use.version}] = graph_.values.size();
      added.makes.push_back(graph_.values.size());
      GraphValue& value = graph_.values.emplace_back();
      value.storage = use.storage;
      value.version = use.version;
      value.maker = number;
    }
  }

  void note_read(GraphOp& op, std::size_t number, const Key& key) {
    const auto found = known_.find(key);
    if (found == known_.end()) {  // made by what is no op of this forward
      op.is_repeatable = false;
      return;
    }
    GraphValue& value = graph_.values[found->second];
    if (!value.readers.empty() && value.readers.back() == number) return;
    value.readers.push_back(number);
    op.reads.push_back(found->second);
  }

  // Has what forward read from outside the same content until the end of backward? What sharding gathers comes again.
  bool stays(StorageId s, std::uint32_t version) const {
    if (gathers_.gather_of(s) != kNoOp) return true;
    return flow_.version_before(s, end_ + 1) == version && (flow_.free(s) == kNoOp || flow_.free(s) > end_);
  }

  void finish(GraphValue& value) {
    const StorageId s = value.storage;
    value.is_last = flow_.version_before(s, graph_.pass.backward) == value.version;
    if (!value.is_last) return;
    bool only_read = true, known = true;
    for (const Touch& touch : flow_.touches(s)) {
      if (touch.op >= graph_.pass.backward) {
        only_read =
            only_read && !touch.writes && touch.op < graph_.pass.end && t_.ops[touch.op].phase != Phase::forward;
        value.backward.push_back(touch.op);
      } else {
        known = known && is_of_graph(touch.op);
      }
    }
    if (!only_read)
      for (const std::size_t reader : value.readers) graph_.ops[reader].is_repeatable = false;
    value.may_go = only_read && known && is_saved_activation(t_, flow_, graph_.pass, s);
    if (value.may_go || flow_.free(s) < graph_.pass.backward) value.bytes = p_.held(s);
  }

  bool is_of_graph(OpId id) const {
    const auto found = std::ranges::lower_bound(graph_.ops, id, {}, &GraphOp::id);
    return found != graph_.ops.end() && found->id == id;
  }

  const StepProfile& p_;
  const Trace& t_;
  const Dataflow& flow_;
  const ParameterGathers gathers_;
  OpId end_ = 0;  // the last op of backward
  ForwardGraph graph_;
  std::map<Key, std::size_t> known_;
};

Bytes bytes_of_uses(const StepProfile& p, OpId id, Access access) {
  const Trace& t = p.trace();
  Bytes bytes = 0;
  for (const Use& use : t.uses_of(t.ops[id]))
    if (use.access == access) bytes += t.storages[use.storage].bytes;
  return bytes;
}

}  // namespace

ForwardGraph forward_graph(const StepProfile& profile, const Pass& pass) { return GraphMaker(profile, pass).run(); }

Bytes bytes_made(const StepProfile& profile, const ForwardGraph& graph, std::size_t op) {
  return bytes_of_uses(profile, graph.ops[op].id, Access::write);
}

Bytes bytes_read(const StepProfile& profile, const ForwardGraph& graph, std::size_t op) {
  return bytes_of_uses(profile, graph.ops[op].id, Access::read);
}

}  // namespace memwall
