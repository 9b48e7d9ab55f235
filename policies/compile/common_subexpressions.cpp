#include "policies/compile/common_subexpressions.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "policies/trace/dataflow.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/trace_edit.h"

namespace memwall {
namespace {

constexpr auto kWithoutNumbers =
    std::to_array<std::string_view>({"abs", "amax", "amin", "clamp", "contiguous", "exp", "max", "min", "neg",
                                     "reciprocal", "relu", "rsqrt", "sigmoid", "silu", "sqrt", "tanh", "to_copy"});
constexpr auto kOfTwoTensors = std::to_array<std::string_view>({"div", "mul"});

class SharedOps {
 public:
  SharedOps(const Trace& trace, const HostCosts& costs, const FusionRules& rules)
      : t_(trace),
        flow_(trace),
        passes_(passes(trace)),
        edit_(trace, costs),
        rules_(rules),
        same_(trace.storages.size()) {
    std::iota(same_.begin(), same_.end(), 0);
  }

  // In host order.
  void visit(OpId id) {
    const Op& op = t_.ops[id];
    if (op.phase != phase_ || (pass_ < passes_.size() && id >= passes_[pass_].begin)) {
      known_.clear();  // another call of the compiled graph
      phase_ = op.phase;
      while (pass_ < passes_.size() && id >= passes_[pass_].begin) ++pass_;
    }
    const StorageId result = result_of(op);
    if (result == kNoStorage || !is_told(op)) return;
    const auto [first, is_new] = known_.try_emplace(key_of(op, result), result);
    if (is_new) return;
    same_[result] = first->second;
    repeated_.push_back({id, result});
    if (reaches_memory(op, result) || reaches_memory(op, first->second)) shared_.insert(result);
  }

  SharedResults apply() && {
    std::size_t gone = 0;
    for (auto at = repeated_.rbegin(); at != repeated_.rend(); ++at) gone += leave_out(*at) ? 1 : 0;
    for (const auto& [storage, last] : late_) {
      const OpId free = flow_.free(storage);
      edit_.remove(free);
      edit_.insert_complete({last, true}, t_.ops[free]);
    }
    return {std::move(edit_).apply(), gone};
  }

 private:
  struct Repeated {
    OpId op;
    StorageId result;
  };

  // Thread, stream, type, compiled module, operator, shape, what is written (shape, bytes), what is read.
  using Key = std::tuple<std::uint16_t, std::uint16_t, DataType, std::string, StringId, ShapeId, ShapeId, Bytes,
                         std::vector<std::pair<StorageId, std::uint32_t>>>;

  Key key_of(const Op& op, StorageId result) const {
    std::vector<std::pair<StorageId, std::uint32_t>> reads;
    for (const Use& use : t_.uses_of(op))
      if (use.access == Access::read) reads.emplace_back(same_[use.storage], use.version);
    const Storage& s = t_.storages[result];
    return {op.thread,        op.stream, op.data_type, named_module(t_.strings[op.module], rules_.modules),
            op.operator_name, op.shape,  s.shape,      s.bytes,
            std::move(reads)};
  }

  // The one tensor that it makes: written by nothing else, and given back by the program.
  StorageId result_of(const Op& op) const {
    StorageId made = kNoStorage;
    for (const Use& use : t_.uses_of(op)) {
      if (use.saved) return kNoStorage;
      if (use.access == Access::read) continue;
      if (made != kNoStorage) return kNoStorage;
      made = use.storage;
    }
    if (made == kNoStorage) return kNoStorage;
    if (const StorageKind kind = t_.storages[made].kind;
        kind != StorageKind::activation && kind != StorageKind::workspace)
      return kNoStorage;
    if (flow_.alloc(made) == kNoOp || flow_.free(made) == kNoOp || flow_.writers(made).size() != 1) return kNoStorage;
    const auto touches = flow_.touches(made);
    const bool one_stream =
        std::ranges::all_of(touches, [&](const Touch& touch) { return t_.ops[touch.op].stream == op.stream; });
    return one_stream && t_.ops[flow_.free(made)].thread == op.thread ? made : kNoStorage;
  }

  bool is_number(StorageId s) const { return known_elements(t_.shapes[t_.storages[s].shape]) == 1; }

  // A use names a storage, not which part of it or along which dimension: as many elements in as are worked on, as many
  // out, or one number.
  bool reads_whole_tensors(const Op& op) const {
    const std::int64_t all = known_elements(t_.shapes[op.shape]);
    return all > 0 && std::ranges::all_of(t_.uses_of(op), [&](const Use& use) {
             return is_number(use.storage) || known_elements(t_.shapes[t_.storages[use.storage].shape]) == all;
           });
  }

  // Does the trace tell all that decides what it computes?
  bool is_told(const Op& op) const {
    if (op.added || !is_fusable(t_, op, rules_)) return false;
    if (!reads_whole_tensors(op)) return false;
    const std::string name = plain_operator_name(operator_of(t_, op));
    if (std::ranges::find(kWithoutNumbers, name) != kWithoutNumbers.end()) return true;
    if (std::ranges::find(kOfTwoTensors, name) == kOfTwoTensors.end()) return false;
    const auto uses = t_.uses_of(op);
    const auto reads = std::ranges::count_if(uses, [](const Use& use) { return use.access == Access::read; });
    return reads == 2 || std::ranges::all_of(uses, [&](const Use& use) { return is_number(use.storage); });
  }

  bool reaches_memory(const Op& op, StorageId result) const {
    if (op.operator_class == OperatorClass::reduction || is_number(result)) return true;
    return std::ranges::any_of(flow_.touches(result), [&](const Touch& touch) {
      return touch.reads && !is_fusable(t_, t_.ops[touch.op], rules_);
    });
  }

  // Where its result is shared, or nobody reads it any more. Later ops were asked before.
  bool leave_out(const Repeated& repeated) {
    const auto [id, result] = repeated;
    const StorageId first = same_[result];
    const auto touches = flow_.touches(result);
    const auto is_gone = [&](const Touch& touch) { return touch.op == id || edit_.removed(touch.op); };
    if (!shared_.contains(result) && !std::ranges::all_of(touches, is_gone)) return false;
    for (const Touch& touch : touches)
      if (!is_gone(touch)) edit_.repoint(touch.op, result, first);
    const OpId free = flow_.free(result);
    if (shared_.contains(result)) {
      const auto [last, is_new] = late_.try_emplace(first, flow_.free(first));
      last->second = std::max(last->second, free);
    }
    edit_.remove(id, flow_.writer(first, 1));
    edit_.remove(flow_.alloc(result));
    edit_.remove(free);
    return true;
  }

  const Trace& t_;
  const Dataflow flow_;
  const std::vector<Pass> passes_;
  TraceEdit edit_;
  const FusionRules& rules_;
  std::vector<StorageId> same_;  // per storage: the first with its content
  std::map<Key, StorageId> known_;  // in this call of the compiled graph
  Phase phase_ = Phase::unknown;
  std::size_t pass_ = 0;            // how many have begun
  std::vector<Repeated> repeated_;  // in host order
  std::set<StorageId> shared_;      // results of theirs whose readers read the first
  std::map<StorageId, OpId> late_;  // given back behind this op
};

}  // namespace

SharedResults with_common_subexpressions(const Trace& trace, const HostCosts& costs, const FusionRules& rules,
                                         const std::function<bool(const Op&)>& is_compiled) {
  SharedOps shared(trace, costs, rules);
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (is_compiled(trace.ops[id])) shared.visit(id);
  return std::move(shared).apply();
}

}  // namespace memwall
