#include "policies/recipe/accumulated_gradients.h"

#include <algorithm>
#include <tuple>

#include "policies/trace/operator_name.h"

namespace memwall {
namespace {

class GradientSearch {
 public:
  GradientSearch(const Trace& trace, const Dataflow& flow, const Pass& pass, OpId end)
      : t_(trace), flow_(flow), pass_(pass), end_(end) {}

  std::vector<AccumulatedGradient> run() const {
    std::vector<AccumulatedGradient> found;
    for (StorageId id = 0; id < t_.storages.size(); ++id)
      if (is_kept(id))
        if (const AccumulatedGradient g = made(id); g.last_writer != kNoOp) found.push_back(g);
    std::ranges::sort(found, {}, [this](const AccumulatedGradient& g) { return order(g); });
    return found;
  }

 private:
  bool within(OpId op) const { return op != kNoOp && op >= pass_.begin && op < end_; }

  bool is_kept(StorageId id) const {
    return t_.storages[id].kind == StorageKind::gradient && within(flow_.alloc(id)) && !within(flow_.free(id));
  }

  AccumulatedGradient made(StorageId id) const {
    AccumulatedGradient g;
    g.gradient = id;
    for (const Touch& touch : flow_.touches(id)) {
      if (!within(touch.op)) break;
      if (touch.writes && g.first_writer == kNoOp) g.first_writer = touch.op;
      if (touch.writes) g.last_writer = touch.op;
    }
    if (g.last_writer == kNoOp) return g;
    g.copied_from = copied(g.last_writer, id);
    g.node_end = node_end(g.last_writer);
    return g;
  }

  StorageId copied(OpId writer, StorageId gradient) const {
    const Op& op = t_.ops[writer];
    const std::string name = plain_operator_name(operator_of(t_, op));
    if ((name != "clone" && name != "copy") || op.use_count != 2 || flow_.writers(gradient).front() != writer)
      return kNoStorage;
    for (const Use& use : t_.uses_of(op))
      if (use.access == Access::read && t_.storages[use.storage].bytes == t_.storages[gradient].bytes)
        return use.storage;
    return kNoStorage;
  }

  bool is_free(OpId id) const { return t_.ops[id].kind == OpKind::free; }

  // Of backward's own, made before the node that begins there: the number that backward began with, which goes at its
  // end.
  bool is_of_others(StorageId id, OpId node) const {
    const auto touches = flow_.touches(id);
    return !touches.empty() && touches.front().op >= pass_.backward && touches.back().op < node;
  }

  // The last free in a row from there on, of what the node that begins at `node` has held.
  OpId last_free(OpId id, OpId node) const {
    while (id + 1 < end_ && is_free(id + 1) && !is_of_others(t_.ops[id + 1].target, node)) ++id;
    return id;
  }

  // The first op of the node that the writer stands in.
  OpId node_begin(OpId writer) const {
    OpId id = writer;
    while (id > pass_.backward && !is_free(id - 1) && !leaves_node(id - 1, writer)) --id;
    return id;
  }

  // Work of another module, or of another node where the trace says which: then the node had nothing to give back.
  bool leaves_node(OpId id, OpId writer) const {
    const Op &op = t_.ops[id], &of_node = t_.ops[writer];
    return runs_on_device(op.kind) && (op.module != of_node.module || op.source != of_node.source);
  }

  // A node ends with what it gives back; then its results go on: that of the data is summed with another one of the
  // same before gradients of parameters are taken. A sum over broadcast extents (of a bias) is the last work of a node.
  OpId node_end(OpId writer) const {
    OpId id = writer;
    while (!sums_a_broadcast(writer) && id + 1 < end_ && !is_free(id + 1) && !leaves_node(id + 1, writer)) ++id;
    while (id > writer && t_.ops[id].kind == OpKind::alloc) --id;  // of what comes next
    const OpId begin = node_begin(writer);
    id = last_free(id, begin);
    const OpId sum = sum_behind(id, begin);
    return sum == kNoOp ? id : last_free(sum, begin);
  }

  // Of one node the order of the operator's inputs; results of one op are in it already.
  std::tuple<OpId, bool, OpId, std::size_t> order(const AccumulatedGradient& g) const {
    const auto uses = t_.uses_of(t_.ops[g.last_writer]);
    const auto use =
        std::ranges::find_if(uses, [&](const Use& u) { return u.storage == g.gradient && u.access == Access::write; });
    return {g.node_end, !sums_a_broadcast(g.last_writer), g.last_writer, static_cast<std::size_t>(use - uses.begin())};
  }

  // As of a bias, which is addmm's first input.
  bool sums_a_broadcast(OpId writer) const { return t_.ops[writer].operator_class == OperatorClass::reduction; }

  // The op next behind `id` that adds a result of the node that begins at `begin` to another gradient; kNoOp if it is
  // something else.
  OpId sum_behind(OpId id, OpId begin) const {
    OpId sum = id + 1;
    while (sum < end_ && t_.ops[sum].kind == OpKind::alloc) ++sum;
    if (sum >= end_ || plain_operator_name(operator_of(t_, t_.ops[sum])) != "add") return kNoOp;
    const auto of_node = [&](const Use& use) {
      const OpId made = use.access == Access::read ? flow_.writer(use.storage, use.version) : kNoOp;
      return made != kNoOp && made >= begin && made < id;
    };
    return std::ranges::any_of(t_.uses_of(t_.ops[sum]), of_node) ? sum : kNoOp;
  }

  const Trace& t_;
  const Dataflow& flow_;
  const Pass& pass_;
  const OpId end_;
};

}  // namespace

std::vector<AccumulatedGradient> accumulated_gradients(const Trace& trace, const Dataflow& flow, const Pass& pass,
                                                       OpId end) {
  return GradientSearch(trace, flow, pass, end).run();
}

}  // namespace memwall
