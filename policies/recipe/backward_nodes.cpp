#include "policies/recipe/backward_nodes.h"

#include <algorithm>
#include <set>

#include "policies/trace/operator_name.h"

namespace memwall {
namespace {

// derivatives.yaml: grad * (exponent * self.pow(exponent - 1)); -0.5 * grad * result.pow(3)
constexpr std::size_t kOpsOfPower = 3;

std::string name_of(const Trace& t, OpId id) { return plain_operator_name(operator_of(t, t.ops[id])); }

// May a node of that operator of forward run this operator? Those of derivatives.yaml that are not called alike.
bool runs_for(const std::string& backward, const std::string& forward) {
  if (backward == "mm") return forward == "mm" || forward == "addmm";
  if (backward == "bmm") return forward == "bmm" || forward == "baddbmm";
  if (backward == "threshold_backward") return forward == "relu";
  if (backward == "nll_loss_backward") return forward == "nll_loss_forward";
  if (backward == "pow") return forward == "pow" || forward == "rsqrt";
  return backward.starts_with(forward);
}

class NodeFinder {
 public:
  NodeFinder(const Trace& trace, const Dataflow& flow, const Pass& pass) : t_(trace), flow_(flow), pass_(pass) {}

  std::vector<BackwardNode> find() && {
    for (OpId id = pass_.backward; id < pass_.end; ++id) {
      const Op& op = t_.ops[id];
      if (op.phase == Phase::backward && op.source != kNoOp) told_ = true;
    }
    for (OpId id = pass_.backward; id < pass_.end; ++id)
      if (t_.ops[id].kind == OpKind::kernel && t_.ops[id].phase == Phase::backward) add(id);
    for (std::size_t i = 0; i < nodes_.size(); ++i) nodes_[i].end = end_of(i);
    return std::move(nodes_);
  }

 private:
  struct Reads {
    std::set<StorageId> kept, gradients;
  };

  Reads reads_of(OpId id) const {
    Reads reads;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::read)
        (is_kept_value(flow_, pass_, use) ? reads.kept : reads.gradients).insert(use.storage);
    return reads;
  }

  // What backward as a whole has held (the ones that it began with) goes behind its last node.
  // A node may begin with a copy of what it was given.
  OpId end_of(std::size_t index) const {
    const BackwardNode& node = nodes_[index];
    std::set<StorageId> own;
    const auto take = [&](OpId id) {
      for (const Use& use : t_.uses_of(t_.ops[id])) own.insert(use.storage);
    };
    for (const OpId id : node.ops) take(id);
    if (node.forward != kNoOp) take(node.forward);
    if (index > 0 && name_of(t_, nodes_[index - 1].ops.back()) == "clone") take(nodes_[index - 1].ops.back());
    OpId end = node.ops.back();
    while (end + 1 < t_.ops.size() && t_.ops[end + 1].kind == OpKind::free && own.contains(t_.ops[end + 1].target))
      ++end;
    return end;
  }

  void add(OpId id) {
    const Reads reads = reads_of(id);
    const std::string name = name_of(t_, id);
    if (name == "add" && is_sum(reads)) {
      nodes_.push_back({.ops = {id}, .sum = true, .accumulates = !reads.kept.empty()});
      return;
    }
    const OpId forward = t_.ops[id].source != kNoOp ? t_.ops[id].source : forward_of(id, name, reads);
    if (joins(id, name, forward, reads)) {
      nodes_.back().ops.push_back(id);
      return;
    }
    if (forward != kNoOp) had_turn_.insert(forward);
    nodes_.push_back({.forward = forward, .ops = {id}});
  }

  bool is_sum(const Reads& reads) const {
    if (reads.kept.empty()) return reads.gradients.size() == 2;
    return reads.kept.size() == 1 && reads.gradients.size() == 1 &&
           t_.storages[*reads.kept.begin()].kind == StorageKind::gradient;
  }

  // Does the op belong to the node before? A sum that undoes a broadcast reads what that has made or was given.
  bool joins(OpId id, const std::string& name, OpId forward, const Reads& reads) const {
    if (nodes_.empty() || nodes_.back().sum) return false;
    const BackwardNode& last = nodes_.back();
    if (forward != kNoOp) return forward == last.forward;
    if (told_ || last.forward == kNoOp || t_.ops[id].module != t_.ops[last.ops.back()].module) return false;
    const std::string made_by = name_of(t_, last.forward);
    if (name == "mul" && reads.kept.empty() && (made_by == "pow" || made_by == "rsqrt"))
      return last.ops.size() < kOpsOfPower;
    if (name != "sum") return false;
    for (const OpId before : last.ops)
      for (const Use& use : t_.uses_of(t_.ops[before]))
        if (reads.gradients.contains(use.storage)) return true;
    return false;
  }

  // A node that keeps nothing: a product with a number.
  OpId forward_without_values(OpId id, const std::string& name) const {
    if (name != "mul" && name != "neg") return kNoOp;
    const auto written = [&](OpId op) {
      Bytes bytes = 0;
      for (const Use& use : t_.uses_of(t_.ops[op]))
        if (use.access == Access::write) bytes += t_.storages[use.storage].bytes;
      return bytes;
    };
    for (OpId forward = pass_.backward; forward-- > pass_.begin;)
      if (t_.ops[forward].use_count == 2 && fits(id, name, forward) && !had_turn_.contains(forward) &&
          written(forward) == written(id))
        return forward;
    return kNoOp;
  }

  OpId forward_of(OpId id, const std::string& name, const Reads& reads) const {
    if (reads.kept.empty()) return t_.ops[id].use_count == 2 ? forward_without_values(id, name) : kNoOp;
    const bool goes_on = !nodes_.empty() && !nodes_.back().sum && shares_gradient(nodes_.back(), reads);
    OpId found = kNoOp;
    for (const StorageId kept : reads.kept)
      for (const Touch& touch : flow_.touches(kept)) {
        if (touch.op >= pass_.backward) break;
        if (touch.op < pass_.begin || !fits(id, name, touch.op)) continue;
        if (goes_on && nodes_.back().forward == touch.op) return touch.op;
        if (!had_turn_.contains(touch.op) && (found == kNoOp || touch.op > found)) found = touch.op;
      }
    return found;
  }

  bool fits(OpId id, const std::string& name, OpId forward) const {
    const Op& op = t_.ops[forward];
    return op.kind == OpKind::kernel && op.phase == Phase::forward && op.module == t_.ops[id].module &&
           runs_for(name, name_of(t_, forward));
  }

  bool shares_gradient(const BackwardNode& node, const Reads& reads) const {
    for (const Use& use : t_.uses_of(t_.ops[node.ops.front()]))
      if (use.access == Access::read && reads.gradients.contains(use.storage)) return true;
    return false;
  }

  const Trace& t_;
  const Dataflow& flow_;
  const Pass& pass_;
  std::vector<BackwardNode> nodes_;
  std::set<OpId> had_turn_;
  bool told_ = false;  // does the trace say which op's node an op is of?
};

}  // namespace

bool is_kept_value(const Dataflow& flow, const Pass& pass, const Use& use) {
  const OpId writer = flow.writer(use.storage, use.version);
  return writer == kNoOp || writer < pass.backward;
}

std::vector<BackwardNode> backward_nodes(const Trace& trace, const Dataflow& flow, const Pass& pass) {
  return NodeFinder(trace, flow, pass).find();
}

}  // namespace memwall
