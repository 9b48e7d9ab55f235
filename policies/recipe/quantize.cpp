// Frozen weights of linear layers in NF4, four bits per element, as bitsandbytes' Linear4bit keeps them (QLoRA): each
// use of a weight makes it 16-bit anew (bitsandbytes/autograd/_functions.py, MatMul4Bit), and that copy goes with the
// product.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "policies/recipe/modelled_op.h"
#include "policies/trace/call_begin.h"
#include "policies/trace/described.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/optimizer_step.h"
#include "policies/trace/trace_edit.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

constexpr const char* kDequantize = "bitsandbytes::dequantize_4bit";
constexpr Bytes kWidth = 2;  // of an element that products read

std::string no_quantization_for(const Trace& trace, const std::string& why) {
  return fmt::format("Policy 'quantize' has no meaning for trace '{}': {}", trace.name, why);
}

// bitsandbytes/functional.py: half a byte each; beside it the largest magnitude of every 64 in a byte, an fp32 scale
// for 256 of these, the offset of all, and two tables of what bits mean.
Bytes packed_bytes(std::int64_t elements) { return (elements + 1) / 2; }
Bytes scale_bytes(std::int64_t elements) {
  const std::int64_t blocks = (elements + 63) / 64;
  return blocks + 4 * ((blocks + 255) / 256) + 4 * (1 + 16 + 256);
}

// One that nothing trains, and how often it is read.
struct FrozenWeight {
  StorageId id = kNoStorage;
  std::vector<OpId> products;
};

class FrozenWeights {
 public:
  explicit FrozenWeights(const Trace& trace) : t_(trace), flow_(trace) {
    for (const OptimizerStep& step : find_optimizer(trace, flow_).steps)
      trained_.insert(trained_.end(), step.parameters.begin(), step.parameters.end());
    std::ranges::sort(trained_);
  }

  bool nothing_is_trained() const { return trained_.empty(); }

  // The output layer stays as it is (transformers' llm_int8_skip_modules): the weight of forward's last product.
  std::vector<FrozenWeight> find() const {
    std::vector<FrozenWeight> found;
    const StorageId output = output_weight();
    for (StorageId id = 0; id < t_.storages.size(); ++id)
      if (id != output && is_frozen_matrix(id))
        if (std::optional<FrozenWeight> weight = used_in_products(id)) found.push_back(*std::move(weight));
    return found;
  }

  // Of a frozen matrix that cannot be quantized: why. "" if there is none.
  std::string obstacle() const {
    for (StorageId id = 0; id < t_.storages.size(); ++id) {
      if (!is_frozen_matrix(id) || id == output_weight()) continue;
      for (const Touch& touch : flow_.touches(id))
        if (!is_product(touch.op))
          return described_storage(t_, id) + " is read by " + described_op(t_, touch.op) +
                 ", no product; expected weights that products read in 16 bit.";
    }
    return "";
  }

 private:
  bool is_product(OpId id) const {
    const Op& op = t_.ops[id];
    return op.kind == OpKind::kernel && is_matrix_product(t_, op) && !op.graph_member;
  }

  bool is_frozen_matrix(StorageId id) const {
    const Storage& s = t_.storages[id];
    if (s.kind != StorageKind::parameter || !s.preexisting || s.shape == 0 || std::ranges::binary_search(trained_, id))
      return false;
    const Shape& shape = t_.shapes[s.shape];
    return shape.size() == 2 && known_elements(shape) * kWidth == s.bytes && !flow_.touches(id).empty();
  }

  std::optional<FrozenWeight> used_in_products(StorageId id) const {
    FrozenWeight weight{.id = id, .products = {}};
    for (const Touch& touch : flow_.touches(id)) {
      if (!is_product(touch.op) || touch.writes) return std::nullopt;
      weight.products.push_back(touch.op);
    }
    return weight;
  }

  StorageId output_weight() const {
    StorageId output = kNoStorage;
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      if (t_.ops[id].phase != Phase::forward || !is_product(id)) continue;
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::read && is_frozen_or_trained_matrix(use.storage)) output = use.storage;
    }
    return output;
  }

  bool is_frozen_or_trained_matrix(StorageId id) const {
    const Storage& s = t_.storages[id];
    return s.kind == StorageKind::parameter && s.preexisting && s.shape != 0 && t_.shapes[s.shape].size() == 2;
  }

  const Trace& t_;
  const Dataflow flow_;
  std::vector<StorageId> trained_;
};

std::string quantize_refusal(const Trace& trace) {
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.strings[trace.ops[id].operator_name] == kDequantize)
      return no_quantization_for(trace, described_op(trace, id) + " makes a weight 16-bit: it is in NF4 already.");
  const FrozenWeights weights(trace);
  if (weights.nothing_is_trained())
    return no_quantization_for(trace, "no op of it updates parameters, so that it is not told which are frozen.");
  if (!weights.find().empty()) return "";
  if (const std::string why = weights.obstacle(); !why.empty()) return no_quantization_for(trace, why);
  return fmt::format("Policy 'quantize' needs frozen 16-bit weights (LoRA); '{}' has none.", trace.name);
}

class Quantization {
 public:
  Quantization(const Trace& trace, const Machine& machine, const Pricer& pricer)
      : t_(trace), pricer_(pricer), edit_(trace, machine.host) {}

  Trace apply() && {
    if (const std::string refusal = quantize_refusal(t_); !refusal.empty()) throw UsageError(refusal);
    const std::vector<FrozenWeight> weights = FrozenWeights(t_).find();
    Bytes before = 0, after = 0;
    for (const FrozenWeight& weight : weights) {
      const std::int64_t elements = known_elements(t_.shapes[t_.storages[weight.id].shape]);
      const Bytes packed = (packed_bytes(elements) + kWidth - 1) / kWidth * kWidth;  // bnb_4bit_quant_storage
      before += t_.storages[weight.id].bytes;
      after += packed + scale_bytes(elements);
      const StorageId scales = add_scales(weight.id, elements);
      edit_.resize(weight.id, packed);
      edit_.tables().storages[weight.id].shape = edit_.tables().shapes.intern({packed / kWidth});
      for (const OpId product : weight.products) dequantize_for(product, weight.id, scales);
    }
    Trace result = std::move(edit_).apply();
    name_originals(result);
    result.notes.push_back(fmt::format(
        "quantize: {} in NF4 take {} instead of {}; making them 16-bit in each use is modelled, not measured.",
        counted_text(weights.size(), "frozen weight"), human_bytes(after), human_bytes(before)));
    return result;
  }

 private:
  StorageId add_scales(StorageId weight, std::int64_t elements) {
    const Storage of = t_.storages[weight];
    std::string label = t_.strings[of.label];
    if (label.ends_with(".weight")) label.resize(label.size() - std::string(".weight").size());
    const Bytes bytes = scale_bytes(elements);
    const StorageId id =
        edit_.builder().add_storage(bytes, StorageKind::workspace, t_.places[of.place], label + ".quant_state", true);
    edit_.tables().storages[id].shape = edit_.tables().shapes.intern({bytes});
    return id;
  }

  // What is made 16-bit for a product that runs again repeats what stands before the first one.
  static void name_originals(Trace& trace) {
    for (Op& op : trace.ops) {
      if (op.phase != Phase::recompute || trace.strings[op.operator_name] != kDequantize) continue;
      while (op.source > 0 && trace.strings[trace.ops[op.source].operator_name] != kDequantize) --op.source;
    }
  }

  // Before the product's own results are allocated.
  InsertionPoint before(OpId product) const { return {call_begin(t_, product), false}; }

  // Two kernels: the magnitudes become fp32, then each element is looked up and multiplied.
  void dequantize_for(OpId product, StorageId weight, StorageId scales) {
    const Op& of = t_.ops[product];
    const Shape& shape = t_.shapes[t_.storages[weight].shape];
    const std::int64_t elements = known_elements(shape);
    const bool backward = of.phase == Phase::backward;
    const StorageKind kind = !backward ? StorageKind::activation : StorageKind::workspace;
    const StorageId wide =
        edit_.builder().add_storage(elements * kWidth, kind, t_.places[t_.storages[weight].place], kDequantize);
    edit_.tables().storages[wide].shape = edit_.tables().shapes.intern(shape);
    edit_.tables().storages[wide].stream = of.stream;
    Op lifetime = modelled_op(OpKind::alloc, of);
    lifetime.target = wide;
    lifetime.host_cost = edit_.costs().allocator_call;
    edit_.insert_complete(before(product), lifetime);
    Op op = modelled_op(OpKind::kernel, of);
    op.name = op.operator_name = edit_.tables().strings.intern(kDequantize);
    op.operator_class = OperatorClass::elementwise;
    op.data_type = of.data_type;
    op.flops = static_cast<double>(elements);
    op.kernels = 2;
    op.framework_calls = 1;
    op.bytes = edit_.tables().storages[weight].bytes + edit_.tables().storages[scales].bytes + elements * kWidth;
    op.host_gap = backward ? edit_.costs().eager_backward : edit_.costs().eager_forward;
    op.host_cost = std::int64_t{op.kernels} * edit_.costs().launch;
    op.duration = pricer_.kernel(op);
    if (of.phase == Phase::recompute) op.source = of.source;
    edit_.insert_complete(before(product), op,
                          {{weight, 0, Access::read}, {scales, 0, Access::read}, {wide, 0, Access::write}});
    edit_.repoint(product, weight, wide);
    lifetime.kind = OpKind::free;
    edit_.insert_complete({product, true}, lifetime);
  }

  const Trace& t_;
  const Pricer& pricer_;
  TraceEdit edit_;
};

class QuantizeRecipe : public Rewriter {
 public:
  // Behind attention:..., before optimizer:... and accumulate:...
  int precedence() const override { return -1; }
  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    return Quantization(trace, machine, pricer).apply();
  }
};

PolicyAnswer answer_of_quantize(const Trace& trace) {
  return {.refusal = quantize_refusal(trace), .setting = "to=nf4", .reason = "frozen weights in four bits"};
}

const RegisterPolicy registered_quantize{
    {.name = "quantize",
     .sentence = "keeps frozen weights of linear layers in four bits (NF4), and makes them 16-bit in each use",
     .kind = PolicyKind::recipe,
     .needs = {.timing = true, .allocations = true, .dataflow = true, .shapes = true},
     .parameters = {choice("to", kRequired, {"nf4"},
                           "nf4: bitsandbytes' Linear4bit with double quantization, of all linear layers with frozen "
                           "weights but the output layer; there is no other (LLM.int8 takes outliers of activations "
                           "apart, and how many there are no step tells). The name may be left out: quantize:nf4.")},
     .answer = answer_of_quantize,
     .make_rewriter = [](const PolicyArguments&) { return std::make_unique<QuantizeRecipe>(); }}};

}  // namespace
}  // namespace memwall
