// Weights pruned as torch.nn.utils.prune prunes them: each weight of a linear or convolutional layer is multiplied by a
// mask of zeros and ones before its layer runs, and its gradient behind.
//
// torch/nn/utils/prune.py (BasePruningMethod.__call__, a forward pre-hook; torch 2.15): the product stays an attribute
// of the module until the next forward makes another. No product becomes smaller: pruning costs time and memory in
// training until the zeros are taken out. Sparse kernels (2:4) and smaller layers are not implemented.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "policies/recipe/program_writer.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/described.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/parameter_casts.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

std::string not_pruned(const Trace& trace, const std::string& why) {
  return fmt::format("Policy 'prune' has no meaning for trace '{}': {}", trace.name, why);
}

bool multiplies(const Op& op) {
  return op.kind == OpKind::kernel &&
         (op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::convolution);
}

// One weight of one layer, in one pass.
struct PrunedWeight {
  StorageId weight = kNoStorage;
  OpId layer = kNoOp;               // the product or convolution of forward
  StorageId cast = kNoStorage;      // what that reads in the weight's place; kNoStorage: the weight itself
  OpId begin = kNoOp;               // the first op of the layer's program
  OpId end = kNoOp;                 // one past the last op of the pass
  StorageId gradient = kNoStorage;  // as its layer gives it, in the weight's type; kNoStorage: it is not trained
  OpId gradient_made = kNoOp;
  OpId node_end = kNoOp;  // behind this op the layer's backward has given back what it held
};

class PruneSearch {
 public:
  PruneSearch(const Trace& trace, const Dataflow& flow) : t_(trace), flow_(flow) {}

  std::vector<PrunedWeight> run() const {
    std::vector<PrunedWeight> all;
    for (const Pass& pass : passes(t_))
      for (OpId id = pass.begin; id < pass.backward; ++id)
        if (t_.ops[id].phase == Phase::forward && multiplies(t_.ops[id]))
          if (const auto found = of_layer(pass, id)) all.push_back(*found);
    return all;
  }

 private:
  // The weight is the largest parameter, or cast of one, that the layer reads; a bias has one extent.
  std::optional<PrunedWeight> of_layer(const Pass& pass, OpId id) const {
    PrunedWeight w;
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (use.access != Access::read) continue;
      const bool cast = is_cast_of_parameter(t_, flow_, use.storage);
      const StorageId parameter = cast ? cast_from(use.storage) : use.storage;
      if (t_.storages[parameter].kind != StorageKind::parameter || is_vector(parameter)) continue;
      w.weight = parameter, w.cast = cast ? use.storage : kNoStorage;
    }
    if (w.weight == kNoStorage) return std::nullopt;
    w.layer = id;
    w.begin = begin_of(id);
    w.end = pass.end;
    find_gradient(pass, w);
    return w;
  }

  StorageId cast_from(StorageId cast) const {
    for (const Use& use : t_.uses_of(t_.ops[flow_.writers(cast).front()]))
      if (use.access == Access::read) return use.storage;
    return cast;
  }

  bool is_vector(StorageId id) const { return t_.shapes[t_.storages[id].shape].size() < 2; }

  bool is_cast(OpId id) const { return plain_operator_name(operator_of(t_, t_.ops[id])) == "to_copy"; }

  // Before the casts of what the layer reads, and their allocs.
  OpId begin_of(OpId id) const {
    OpId begin = id;
    while (begin > 0) {
      const Op& before = t_.ops[begin - 1];
      const bool own = before.kind == OpKind::kernel && before.module == t_.ops[id].module && is_cast(begin - 1);
      if (before.kind != OpKind::alloc && !own) break;
      --begin;
    }
    return begin;
  }

  void find_gradient(const Pass& pass, PrunedWeight& w) const {
    const Op& layer = t_.ops[w.layer];
    const std::int64_t elements = known_elements(t_.shapes[t_.storages[w.weight].shape]);
    for (OpId id = pass.backward; id < pass.end && w.gradient == kNoStorage; ++id) {
      const Op& op = t_.ops[id];
      if (!multiplies(op) || op.phase != Phase::backward || op.module != layer.module) continue;
      for (const Use& use : t_.uses_of(op))
        if (use.access == Access::write && known_elements(t_.shapes[t_.storages[use.storage].shape]) == elements &&
            is_gradient_of_weight(w, use.storage, op))
          w.gradient = use.storage, w.gradient_made = id;
    }
    if (w.gradient == kNoStorage) return;
    if (w.cast != kNoStorage && t_.storages[w.gradient].bytes != t_.storages[w.weight].bytes) cast_back(w);
    w.node_end = node_end(w.gradient_made);
  }

  // A square layer gives its input's gradient as many elements; that is made of the weight.
  bool is_gradient_of_weight(const PrunedWeight& w, StorageId written, const Op& op) const {
    if (op.operator_class == OperatorClass::convolution)
      return t_.shapes[t_.storages[written].shape] == t_.shapes[t_.storages[w.weight].shape];
    const StorageId factor = w.cast == kNoStorage ? w.weight : w.cast;
    return std::ranges::none_of(t_.uses_of(op), [&](const Use& use) { return use.storage == factor; });
  }

  void cast_back(PrunedWeight& w) const {
    for (const Touch& touch : flow_.touches(w.gradient))
      if (touch.reads && is_cast(touch.op))
        for (const Use& use : t_.uses_of(t_.ops[touch.op]))
          if (use.access == Access::write) {
            w.gradient = use.storage, w.gradient_made = touch.op;
            return;
          }
  }

  // The rest of the node's kernels, what it gives back, and the sum of its input's gradient with another.
  OpId node_end(OpId made) const {
    OpId end = made;
    for (OpId id = made + 1; id < t_.ops.size(); ++id) {
      const Op& op = t_.ops[id];
      if (op.kind == OpKind::alloc) continue;
      const bool of_node = op.kind == OpKind::kernel && op.module == t_.ops[made].module &&
                           op.phase == Phase::backward && !is_cast(made) &&
                           (multiplies(op) || op.operator_class == OperatorClass::reduction);
      if (!of_node) break;
      end = id;
    }
    const OpId begin = node_begin(made);
    end = last_free(end, begin);
    if (is_cast(made)) return last_cast_back(end, t_.ops[made].module);
    OpId next = end + 1;
    while (next < t_.ops.size() && t_.ops[next].kind == OpKind::alloc) ++next;
    if (next < t_.ops.size() && is_sum_of_node(next, made, end)) end = last_free(next, begin);
    return end;
  }

  // Under autocast a layer's bias was cast before its weight: its gradient is cast back behind the weight's.
  OpId last_cast_back(OpId id, StringId module) const {
    for (OpId next = id + 1; next < t_.ops.size(); ++next) {
      const Op& op = t_.ops[next];
      if (op.kind == OpKind::alloc) continue;
      if (op.kind != OpKind::kernel || !is_cast(next) || op.module != module) break;
      next = id = last_free(next, next);
    }
    return id;
  }

  // The last free in a row behind `id`, of what the node that begins at `node` has held: not of the number that
  // backward began with, which goes at its end.
  OpId last_free(OpId id, OpId node) const {
    const auto of_node = [&](const Op& op) {
      if (op.kind != OpKind::free) return false;
      const auto touches = flow_.touches(op.target);
      return touches.empty() || touches.back().op >= node;
    };
    while (id + 1 < t_.ops.size() && of_node(t_.ops[id + 1])) ++id;
    return id;
  }

  // The first op of the node that `made` stands in.
  OpId node_begin(OpId made) const {
    OpId begin = made;
    while (begin > 0) {
      const Op& before = t_.ops[begin - 1];
      const bool own =
          before.kind == OpKind::kernel && before.module == t_.ops[made].module && before.phase == Phase::backward;
      if (before.kind != OpKind::alloc && !own) break;
      --begin;
    }
    return begin;
  }

  bool is_sum_of_node(OpId id, OpId made, OpId end) const {
    if (t_.ops[id].kind != OpKind::kernel || plain_operator_name(operator_of(t_, t_.ops[id])) != "add") return false;
    const auto of_node = [&](const Use& use) {
      const OpId maker = use.access == Access::read ? flow_.writer(use.storage, use.version) : kNoOp;
      return maker != kNoOp && maker != made && maker > made - std::min<OpId>(made, 4) && maker <= end;
    };
    return std::ranges::any_of(t_.uses_of(t_.ops[id]), of_node);
  }

  const Trace& t_;
  const Dataflow& flow_;
};

std::string prune_refusal(const Trace& trace, const std::vector<PrunedWeight>& weights) {
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.phase == Phase::recompute)
      return not_pruned(trace,
                        described_op(trace, id) + " runs again, with the hook that prunes, which is not implemented.");
    if (op.graph_member || op.dispatch == Dispatch::compiled)
      return not_pruned(trace, described_op(trace, id) + " is compiled, or in a CUDA graph.");
  }
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (std::size_t k = i + 1; k < weights.size() && weights[k].end == weights[i].end; ++k)
      if (weights[k].weight == weights[i].weight &&
          trace.ops[weights[k].layer].module == trace.ops[weights[i].layer].module)
        return not_pruned(trace, described_op(trace, weights[k].layer) +
                                     " is a further call of a layer in a pass, which is not implemented.");
  for (const Storage& storage : trace.storages)
    if (storage.preexisting && trace.strings[storage.label].ends_with("weight_mask"))
      return not_pruned(trace, "its weights are pruned already (" + trace.strings[storage.label] + ").");
  if (weights.empty())
    return not_pruned(trace, "no product or convolution of its forward reads a parameter of known shape.");
  return "";
}

class PrunedTrace {
 public:
  PrunedTrace(const Trace& trace, const Machine& machine, const Pricer& pricer)
      : t_(trace), flow_(trace), edit_(trace, machine.host), writer_(edit_, pricer) {}

  Trace apply() && {
    const std::vector<PrunedWeight> weights = PruneSearch(t_, flow_).run();
    if (const std::string refusal = prune_refusal(t_, weights); !refusal.empty()) throw UsageError(refusal);
    for (const PrunedWeight& w : weights) prune(w);
    edit_.tables().notes.push_back(
        fmt::format("prune: {} multiplied by masks of {} in all, the products {} from forward to forward; no layer "
                    "becomes smaller.",
                    counted_text(layers_.size(), "weight"), human_bytes(masks_), human_bytes(masks_)));
    return std::move(edit_).apply();
  }

 private:
  // Mask and newest product of a layer.
  struct Layer {
    StorageId mask = kNoStorage, product = kNoStorage;
  };

  Layer& layer_of(const PrunedWeight& w) {
    const auto [at, is_new] = layers_.try_emplace({w.weight, t_.ops[w.layer].module});
    if (!is_new) return at->second;
    const Storage& weight = t_.storages[w.weight];
    const std::string label = t_.strings[weight.label];
    const std::string place = t_.places[weight.place];
    for (const auto& [storage, kind, name] :
         {std::tuple(&at->second.mask, StorageKind::parameter, label + "_mask"),
          std::tuple(&at->second.product, StorageKind::activation, std::string("aten::mul"))}) {
      *storage = edit_.builder().add_storage(weight.bytes, kind, place, name, true);
      edit_.tables().storages[*storage].shape = weight.shape;
    }
    masks_ += weight.bytes;
    return at->second;
  }

  WrittenTensor tensor(StorageId storage, const PrunedWeight& w) const {
    const Storage& weight = t_.storages[w.weight];
    const std::int64_t elements = known_elements(t_.shapes[weight.shape]);
    return {storage, t_.shapes[weight.shape], weight.bytes == 4 * elements ? DataType::fp32 : DataType::bf16};
  }

  void prune(const PrunedWeight& w) {
    Layer& layer = layer_of(w);
    const WrittenTensor weight = tensor(w.weight, w), mask = tensor(layer.mask, w);
    writer_.move_to({w.begin, false}, t_.ops[w.layer]);
    const WrittenTensor product = writer_.make("aten::mul", weight.shape, weight.type);
    writer_.kernel(elementwise_work("aten::mul", weight.type, weight.elements()), {&mask, &weight}, {&product});
    writer_.free(layer.product);  // that of the forward before
    layer.product = product.storage;
    read_in_place_of(w, product.storage);
    if (w.gradient != kNoStorage) prune_gradient(w, mask);
  }

  void read_in_place_of(const PrunedWeight& w, StorageId product) {
    if (w.cast == kNoStorage) {
      for (const Touch& touch : flow_.touches(w.weight))
        if (touch.reads && multiplies(t_.ops[touch.op]) && t_.ops[touch.op].module == t_.ops[w.layer].module &&
            touch.op >= w.layer && touch.op < w.end)
          edit_.repoint(touch.op, w.weight, product);
      return;
    }
    edit_.repoint(flow_.writers(w.cast).front(), w.weight, product);
    // autocast keeps casts of parameters until it ends, and no others.
    const OpId freed = flow_.free(w.cast), last = flow_.touches(w.cast).back().op;
    if (freed == kNoOp || last != w.layer) return;
    edit_.remove(freed);
    edit_.insert_complete({w.layer, true}, t_.ops[freed]);
  }

  void prune_gradient(const PrunedWeight& w, const WrittenTensor& mask) {
    const Storage& known = t_.storages[w.gradient];
    writer_.move_to({w.node_end, true}, t_.ops[w.gradient_made]);
    const WrittenTensor given = tensor(w.gradient, w), pruned = writer_.make("aten::mul", mask.shape, mask.type);
    writer_.kernel(elementwise_work("aten::mul", mask.type, mask.elements()), {&given, &mask}, {&pruned});
    if (known.kind == StorageKind::gradient) {
      edit_.tables().storages[pruned.storage].kind = known.kind;
      edit_.tables().storages[pruned.storage].label = known.label;
      edit_.tables().storages[w.gradient].kind = StorageKind::workspace;
      edit_.tables().storages[w.gradient].label = t_.ops[w.gradient_made].operator_name;
    }
    writer_.free(w.gradient);
    for (const Touch& touch : flow_.touches(w.gradient))
      if (touch.op > w.node_end) edit_.repoint(touch.op, w.gradient, pruned.storage);
    if (const OpId freed = flow_.free(w.gradient); freed != kNoOp) edit_.repoint(freed, w.gradient, pruned.storage);
  }

  const Trace& t_;
  const Dataflow flow_;
  TraceEdit edit_;
  ProgramWriter writer_;
  std::map<std::pair<StorageId, StringId>, Layer> layers_;
  Bytes masks_ = 0;
};

class Prune : public Rewriter {
 public:
  // Behind what repeats passes: each forward multiplies anew.
  int precedence() const override { return 2; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    return PrunedTrace(trace, machine, pricer).apply();
  }
};

const RegisterPolicy registered_prune{
    {.name = "prune",
     .sentence = "multiplies weights of linear and convolutional layers by masks, as torch.nn.utils.prune does",
     .kind = PolicyKind::recipe,
     .needs = {.timing = true, .allocations = true, .dataflow = true, .modules = true, .shapes = true},
     .answer = [](const Trace& trace) -> PolicyAnswer {
       const Dataflow flow(trace);
       return {.refusal = prune_refusal(trace, PruneSearch(trace, flow).run()), .setting = {}, .reason = {}};
     },
     .make_rewriter = [](const PolicyArguments&) { return std::make_unique<Prune>(); }}};

}  // namespace
}  // namespace memwall
