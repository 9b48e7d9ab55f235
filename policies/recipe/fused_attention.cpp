#include "policies/recipe/fused_attention.h"

#include <algorithm>
#include <set>

#include "policies/recipe/dropped_storages.h"
#include "policies/recipe/modelled_op.h"
#include "policies/trace/described.h"
#include "policies/trace/trace_edit.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr const char* kForward = "aten::_scaled_dot_product_flash_attention";
constexpr const char* kBackward = "aten::_scaled_dot_product_flash_attention_backward";

class AttentionFusion {
 public:
  AttentionFusion(const Trace& trace, const Machine& machine, const Pricer& pricer)
      : t_(trace), flow_(trace), pricer_(pricer), edit_(trace, machine.host) {}

  Trace apply() && {
    for (const AttentionChain& chain : attention_chains(t_, flow_)) fuse(chain);
    drop_unused();
    return without_storages(std::move(edit_).apply(), dropped_);
  }

 private:
  // Of one chain.
  struct Call {
    std::int64_t batch = 0, heads = 0, queries = 0, keys = 0, size = 0, value_size = 0;
    double scores_flops = 0, weighted_flops = 0;
    Bytes query = 0, key = 0, value = 0, result = 0;
    StorageId sums = kNoStorage, seed = kNoStorage, unused = kNoStorage;
    ShapeId shape = 0;
  };

  Call call_of(const AttentionChain& chain) {
    const Op &scores = t_.ops[chain.scores], &weighted = t_.ops[chain.weighted];
    const Shape &a = t_.shapes[scores.shape], &b = t_.shapes[weighted.shape];  // {batch x heads, m, n, k}
    Call call{.queries = a[1], .keys = a[2], .size = a[3], .value_size = b[2]};
    const Bytes width = bytes_of(scores.data_type);
    const Storage& query = t_.storages[chain.query];
    const Shape& shape = t_.shapes[query.shape];
    std::int64_t rows = shape.empty() ? 0 : known_elements(shape) / std::max<std::int64_t>(1, shape.back());
    call.batch = shape.size() == 4 ? shape[0] : rows / std::max<std::int64_t>(1, call.queries);
    if (width == 0 || call.batch == 0 || a[0] % call.batch != 0)
      throw UsageError("Policy 'attention' has no meaning for trace '" + t_.name + "': of " +
                       described_op(t_, chain.scores) + " batch and heads are not told.");
    call.heads = a[0] / call.batch;
    call.scores_flops = scores.flops;
    call.weighted_flops = weighted.flops;
    call.query = a[0] * call.queries * call.size * width;
    call.key = a[0] * call.keys * call.size * width;
    call.value = a[0] * call.keys * call.value_size * width;
    call.result = a[0] * call.queries * call.value_size * width;
    call.shape = edit_.tables().shapes.intern(
        {call.batch, call.heads, call.heads, call.queries, call.keys, call.size, chain.causal ? 1 : 0});
    call.sums = add(kForward, {call.batch, call.heads, call.queries}, DataType::fp32);
    call.seed = add(kForward, {2}, DataType::int64);
    call.unused = add(kForward, {1}, DataType::int64);
    return call;
  }

  StorageId add(const char* label, const Shape& shape, DataType type) {
    const StorageId id =
        edit_.builder().add_storage(elements_of(shape) * bytes_of(type), StorageKind::activation, "hbm", label);
    edit_.tables().storages[id].shape = edit_.tables().shapes.intern(shape);
    return id;
  }

  void fuse(const AttentionChain& chain) {
    const Call call = call_of(chain);
    std::set<StorageId> kept{chain.result, chain.of_query, chain.of_key, chain.of_value};
    for (const auto* ops : {&chain.forward, &chain.backward})
      for (const OpId id : *ops) remove(id, kept);
    call_forward(chain, call);
    call_backward(chain, call);
  }

  // The op, with what it makes.
  void remove(OpId id, const std::set<StorageId>& kept) {
    edit_.remove(id);
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (use.access != Access::write) continue;
      if (const OpId alloc = flow_.alloc(use.storage); alloc != kNoOp) edit_.remove(alloc);
      if (kept.contains(use.storage)) continue;
      if (const OpId freed = flow_.free(use.storage); freed != kNoOp) edit_.remove(freed);
      dropped_.insert(use.storage);
    }
  }

  Op kernel(const char* name, OpId like, const Call& call) {
    Op op = modelled_op(OpKind::kernel, t_.ops[like]);
    op.name = op.operator_name = edit_.tables().strings.intern(name);
    op.operator_class = OperatorClass::attention;
    op.data_type = t_.ops[like].data_type;
    op.shape = call.shape;
    op.framework_calls = 1;
    op.host_gap = op.phase == Phase::backward ? edit_.costs().eager_backward : edit_.costs().eager_forward;
    op.host_cost = edit_.costs().launch;
    return op;
  }

  void alloc(InsertionPoint point, OpId like, StorageId storage) { lifetime(OpKind::alloc, point, like, storage); }
  void lifetime(OpKind kind, InsertionPoint point, OpId like, StorageId storage) {
    Op op = modelled_op(kind, t_.ops[like]);
    op.target = storage;
    op.stream = edit_.tables().storages[storage].stream;
    op.host_cost = edit_.costs().allocator_call;
    edit_.insert_complete(point, op);
  }

  Bytes beside(const Call& call) const {
    Bytes bytes = 0;
    for (const StorageId id : {call.sums, call.seed, call.unused}) bytes += edit_tables().storages[id].bytes;
    return bytes;
  }
  const Trace& edit_tables() const { return const_cast<TraceEdit&>(edit_).tables(); }

  static std::vector<Use> uses(std::initializer_list<StorageId> reads, std::initializer_list<StorageId> writes) {
    std::vector<Use> all;
    std::set<StorageId> seen;
    for (const StorageId id : reads)
      if (seen.insert(id).second) all.push_back({id, 0, Access::read});
    for (const StorageId id : writes) all.push_back({id, 0, Access::write});
    return all;
  }

  void call_forward(const AttentionChain& chain, const Call& call) {
    const OpId like = chain.weighted;
    const InsertionPoint point{like, false};
    Storage& result = edit_.tables().storages[chain.result];
    result.label = edit_.tables().strings.intern(kForward);
    result.shape = edit_.tables().shapes.intern({call.batch, call.heads, call.queries, call.value_size});
    for (const StorageId id : {chain.result, call.sums, call.seed, call.unused}) alloc(point, like, id);
    Op op = kernel(kForward, like, call);
    op.flops = call.scores_flops + call.weighted_flops;
    op.bytes = call.query + call.key + call.value + call.result + beside(call);
    op.duration = pricer_.kernel(op, edit_.tables().shapes[op.shape]);
    edit_.insert_complete(
        point, op, uses({chain.query, chain.key, chain.value}, {chain.result, call.sums, call.seed, call.unused}));
  }

  // The scores again, then the gradients of values, weights, queries and keys: five products for two.
  void call_backward(const AttentionChain& chain, const Call& call) {
    const OpId like = chain.backward.front();
    const InsertionPoint point{like, false};
    for (const StorageId id : {chain.of_query, chain.of_key, chain.of_value}) {
      alloc(point, like, id);
      edit_.tables().storages[id].label = edit_.tables().strings.intern(kBackward);
    }
    Op op = kernel(kBackward, chain.weighted, call);
    op.phase = Phase::backward;
    op.source = kNoOp;
    op.thread = t_.ops[like].thread;
    op.host_gap = edit_.costs().eager_backward;
    op.flops = 3 * call.scores_flops + 2 * call.weighted_flops;
    op.bytes = 2 * (call.query + call.key + call.value + call.result) + beside(call);
    op.duration = pricer_.kernel(op, edit_.tables().shapes[op.shape]);
    edit_.insert_complete(
        point, op,
        uses({chain.given, chain.query, chain.key, chain.value, chain.result, call.sums, call.seed, call.unused},
             {chain.of_query, chain.of_key, chain.of_value}));
    end_lives(chain, call, point, like);
  }

  // Gradients that it was given go, then what it had kept, where nobody else holds it longer.
  void end_lives(const AttentionChain& chain, const Call& call, InsertionPoint point, OpId like) {
    std::set<StorageId> done;
    for (const StorageId id : {chain.given, chain.key, chain.query, chain.value, chain.result}) {
      const OpId freed = flow_.free(id);
      if (!done.insert(id).second || freed == kNoOp || t_.storages[id].preexisting) continue;
      const bool given = id == chain.given;
      if (!given && freed > chain.backward.back()) continue;
      bool read_later = false;
      for (const Touch& touch : flow_.touches(id))
        read_later = read_later || (touch.op > chain.backward.front() && !edit_.removed(touch.op));
      if (read_later) continue;
      edit_.remove(freed);
      lifetime(OpKind::free, point, like, id);
    }
    for (const StorageId id : {call.sums, call.seed, call.unused}) lifetime(OpKind::free, point, like, id);
  }

  // Masks that nothing reads any more.
  void drop_unused() {
    for (StorageId id = 0; id < t_.storages.size(); ++id) {
      const Storage& storage = t_.storages[id];
      if (!storage.preexisting || storage.kind != StorageKind::parameter || flow_.touches(id).empty()) continue;
      const bool unused =
          std::ranges::all_of(flow_.touches(id), [&](const Touch& touch) { return edit_.removed(touch.op); });
      if (unused) dropped_.insert(id);
    }
  }

  const Trace& t_;
  const Dataflow flow_;
  const Pricer& pricer_;
  TraceEdit edit_;
  std::set<StorageId> dropped_;
};

}  // namespace

std::vector<AttentionChain> attention_chains(const Trace& trace, const Dataflow& flow) {
  std::vector<AttentionChain> all;
  for (const Pass& pass : passes(trace)) {
    const std::vector<AttentionChain> of_pass = attention_chains(trace, flow, pass, backward_nodes(trace, flow, pass));
    all.insert(all.end(), of_pass.begin(), of_pass.end());
  }
  return all;
}

Trace with_fused_attention(const Trace& trace, const Machine& machine, const Pricer& pricer) {
  return AttentionFusion(trace, machine, pricer).apply();
}

}  // namespace memwall
