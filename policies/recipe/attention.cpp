// Another kernel of attention: scaled_dot_product_attention by FlashAttention, by the memory-efficient kernel, by
// cuDNN, or by PyTorch's operators. The same products; of fused kernels what differs is how long they take, and what is
// kept beside the result. For these, attention with its scores in memory is put together first.
#include <fmt/format.h>

#include <algorithm>

#include "policies/recipe/attention_calls.h"
#include "policies/recipe/fused_attention.h"
#include "policies/recipe/unfused_attention.h"
#include "policies/trace/described.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/trace_edit.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"
#include "sim/trace/attention_kernel.h"

namespace memwall {
namespace {

constexpr const char* kPrefix = "aten::_scaled_dot_product_";
constexpr std::int64_t kLargestHead = 256;  // of FlashAttention-2 and cuDNN (sdp_utils.cpp)
constexpr std::int64_t kRowsTogether = 32;  // of the memory-efficient kernel's sums (kAlignLSE)

struct FusedKernel {
  const char* word;  // of the setting
  AttentionKernel kernel;
  const char* operator_name;  // behind the prefix
  const char* words;          // as generated steps say it
};
constexpr FusedKernel kKernels[] = {
    {"flash", AttentionKernel::flash_attention_2, "flash_attention", "flash attention"},
    {"flash3", AttentionKernel::flash_attention_3, "flash_attention", "FlashAttention-3"},
    {"flash4", AttentionKernel::flash_attention_4, "flash_attention", "FlashAttention-4"},
    {"efficient", AttentionKernel::memory_efficient, "efficient_attention", "memory-efficient attention"},
    {"cudnn", AttentionKernel::cudnn, "cudnn_attention", "cuDNN's attention"},
};

std::string no_attention_for(const Trace& trace, const std::string& why) {
  return fmt::format("Policy 'attention' has no meaning for trace '{}': {}", trace.name, why);
}

// {batch, heads, heads of keys and values, queries, keys, head size, causal}
const Shape& shape_of(const Trace& trace, const Op& op) { return trace.shapes[op.shape]; }
constexpr std::size_t kExtents = 7;

std::string attention_refusal(const Trace& trace) {
  bool any = false;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (!is_fused_attention(trace, op)) continue;
    any = true;
    if (op.graph_member) return no_attention_for(trace, described_op(trace, id) + " is in a CUDA graph.");
    if (shape_of(trace, op).size() < kExtents)
      return no_attention_for(trace, described_op(trace, id) + " does not say its heads and lengths.");
  }
  if (any) return "";
  const std::vector<AttentionChain> chains = attention_chains(trace, Dataflow(trace));
  for (const AttentionChain& chain : chains)
    if (!chain.complete)
      return no_attention_for(trace, "of attention around " + described_op(trace, chain.scores) +
                                         " the backward is not whole (a gradient that nobody asks for), or a mask is "
                                         "applied that is not causal.");
  if (!chains.empty()) return "";
  return fmt::format("Policy 'attention' finds no attention of PyTorch's in trace '{}'.", trace.name);
}

// Why the kernel does not take this call, "" if it does: the rules of ATen/native/transformers/cuda/sdp_utils.cpp that
// depend on the call.
std::string call_refusal(const Trace& trace, OpId id, AttentionKernel to) {
  const Op& op = trace.ops[id];
  const Shape& shape = shape_of(trace, op);
  const bool narrow = op.data_type == DataType::fp16 || op.data_type == DataType::bf16;
  if (to == AttentionKernel::memory_efficient) {
    if (shape[1] == shape[2]) return "";
    return fmt::format("{} has {} heads of queries and {} of keys, which the memory-efficient kernel does not take.",
                       described_op(trace, id), shape[1], shape[2]);
  }
  if (!narrow)
    return fmt::format("{} is in {}; expected fp16 or bf16 (precision:bf16 or precision:amp_bf16 beside it).",
                       described_op(trace, id), to_string(op.data_type));
  if (shape[5] > kLargestHead || shape[5] % 8 != 0)
    return fmt::format("{} has heads of {} elements; expected a multiple of 8 up to {}.", described_op(trace, id),
                       shape[5], kLargestHead);
  return "";
}

// Those that are written for one generation of GPUs: where the machine's file prices fused kernels, which has them,
// else by compute capability (9: Hopper, and AMD's, 10: Blackwell). A machine without a GPU (0) is not asked.
std::string machine_refusal(const Machine& machine, AttentionKernel to) {
  const bool third = to == AttentionKernel::flash_attention_3;
  if (!third && to != AttentionKernel::flash_attention_4) return "";
  for (const AttentionCost& cost : machine.gpu.attention)
    if (cost.kernel == to) return "";
  const int major = machine.gpu.compute_major;
  const bool is_amd = machine.gpu.name.find("AMD") != std::string::npos;
  if (machine.gpu.attention.empty() && (major == 0 || (!is_amd && major == (third ? 9 : 10)))) return "";
  return fmt::format(
      "Policy 'attention': {} does not run on {}: it is written for {} GPUs. Expected flash (FlashAttention-2), "
      "efficient, cudnn or math.",
      to_string(to), machine.gpu.name, third ? "Hopper" : "Blackwell");
}

class AttentionChange {
 public:
  AttentionChange(const Trace& trace, const Machine& machine, const Pricer& pricer, const FusedKernel& to)
      : t_(trace), pricer_(pricer), to_(to), edit_(trace, machine.host) {}

  Trace apply() && {
    for (OpId id = 0; id < t_.ops.size(); ++id)
      if (is_fused_attention(t_, t_.ops[id])) resize_results(id);
    std::size_t changed = 0;
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      if (!is_fused_attention(t_, t_.ops[id])) continue;
      if (const std::string why = call_refusal(t_, id, to_.kernel); !why.empty())
        throw UsageError(no_attention_for(t_, why));
      change(id);
      changed += t_.ops[id].phase == Phase::forward ? 1 : 0;
    }
    Trace result = std::move(edit_).apply();
    result.notes.push_back(fmt::format("attention: {} by {}.", counted_text(changed, "call"), to_string(to_.kernel)));
    for (RecipeItem& item : result.recipe)
      if (item.what == "attention") item = {.what = item.what, .value = to_.words, .setting = ""};
    return result;
  }

 private:
  bool is_backward(const Op& op) const { return t_.strings[op.operator_name].ends_with("_backward"); }

  // Beside its result: the sum of exponentials of each row in fp32, and two numbers of the random generator, of which
  // FlashAttention's first is a pair.
  void resize_results(OpId id) {
    const Op& op = t_.ops[id];
    for (const Use& use : t_.uses_of(op))
      if (use.access == Access::write && t_.storages[use.storage].label == op.operator_name)
        edit_.tables().storages[use.storage].label = edit_.tables().strings.intern(name_of(op));
    if (is_backward(op)) return;
    const Shape& shape = shape_of(t_, op);
    const bool flash = std::string_view(to_.operator_name) == "flash_attention";
    const std::int64_t rows = to_.kernel == AttentionKernel::memory_efficient
                                  ? (shape[3] + kRowsTogether - 1) / kRowsTogether * kRowsTogether
                                  : shape[3];
    const Bytes old_sums = shape[0] * shape[1] * shape[3] * bytes_of(DataType::fp32);
    std::vector<StorageId> numbers;
    for (const Use& use : t_.uses_of(op)) {
      if (use.access != Access::write) continue;
      const Storage& storage = t_.storages[use.storage];
      if (storage.bytes <= 2 * bytes_of(DataType::int64))
        numbers.push_back(use.storage);
      else if (storage.bytes == old_sums || storage.bytes == padded(old_sums, shape))
        set_shape(use.storage, {shape[0], shape[1], rows}, DataType::fp32);
    }
    std::ranges::sort(numbers);
    if (numbers.size() != 2) return;
    set_shape(numbers[0], {flash ? 2 : 1}, DataType::int64);
    set_shape(numbers[1], {1}, DataType::int64);
  }

  static Bytes padded(Bytes sums, const Shape& shape) {
    return sums / shape[3] * ((shape[3] + kRowsTogether - 1) / kRowsTogether * kRowsTogether);
  }

  void set_shape(StorageId id, const Shape& shape, DataType type) {
    edit_.resize(id, elements_of(shape) * bytes_of(type));
    edit_.tables().storages[id].shape = edit_.tables().shapes.intern(shape);
  }

  std::string name_of(const Op& op) const {
    return std::string(kPrefix) + to_.operator_name + (is_backward(op) ? "_backward" : "");
  }

  void change(OpId id) {
    const Op& before = t_.ops[id];
    Op op = before;
    op.operator_name = edit_.tables().strings.intern(name_of(before));
    if (before.name == before.operator_name) op.name = op.operator_name;
    for (const Use& use : t_.uses_of(before))
      op.bytes += edit_.tables().storages[use.storage].bytes - t_.storages[use.storage].bytes;
    Shape shape = shape_of(t_, before);
    shape.resize(kExtents);
    shape = with_attention_kernel(shape, to_.kernel);
    op.shape = edit_.tables().shapes.intern(shape);
    op.duration = before.origin == Origin::modelled ? pricer_.kernel(op, shape)
                                                    : pricer_.scaled(before, shape_of(t_, before), op, shape);
    if (op.origin == Origin::measured) op.origin = Origin::transferred;
    edit_.replace(id, op);
  }

  const Trace& t_;
  const Pricer& pricer_;
  const FusedKernel& to_;
  TraceEdit edit_;
};

class AttentionRecipe : public Rewriter {
 public:
  explicit AttentionRecipe(const FusedKernel& to) : to_(to) {}

  // Before optimizer:... and accumulate:...
  int precedence() const override { return -2; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    if (const std::string refusal = attention_refusal(trace); !refusal.empty()) throw UsageError(refusal);
    if (const std::string why = machine_refusal(machine, to_.kernel); !why.empty()) throw UsageError(why);
    const auto is_fused = [&](const Op& op) { return is_fused_attention(trace, op); };
    if (std::ranges::any_of(trace.ops, is_fused)) return AttentionChange(trace, machine, pricer, to_).apply();
    const Trace fused = with_fused_attention(trace, machine, pricer);
    return AttentionChange(fused, machine, pricer, to_).apply();
  }

 private:
  const FusedKernel& to_;
};

// By PyTorch's operators.
class UnfusedAttention : public Rewriter {
 public:
  explicit UnfusedAttention(bool dropout) : dropout_(dropout) {}

  int precedence() const override { return -2; }

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    if (const std::string refusal = attention_refusal(trace); !refusal.empty()) throw UsageError(refusal);
    const auto is_fused = [&](const Op& op) { return is_fused_attention(trace, op); };
    const auto calls =
        std::ranges::count_if(trace.ops, [&](const Op& op) { return is_fused(op) && op.phase == Phase::forward; });
    if (calls == 0) throw UsageError(no_attention_for(trace, "its scores are in memory already."));
    if (const std::string why = unfused_obstacle(trace); !why.empty()) throw UsageError(no_attention_for(trace, why));
    Trace result = with_unfused_attention(trace, machine, pricer, dropout_);
    result.notes.push_back(fmt::format("attention: {} by PyTorch's operators, with scores in memory{}.",
                                       counted_text(static_cast<std::size_t>(calls), "call"),
                                       dropout_ ? " and dropout of weights" : ""));
    for (RecipeItem& item : result.recipe)
      if (item.what == "attention")
        item = {.what = item.what, .value = "attention by PyTorch's operators", .setting = ""};
    return result;
  }

 private:
  const bool dropout_;
};

std::unique_ptr<Rewriter> attention_of(const PolicyArguments& a) {
  const std::string& to = a.choice("to");
  if (to == "math") return std::make_unique<UnfusedAttention>(a.flag("dropout"));
  if (a.flag("dropout"))
    throw UsageError("Policy 'attention': dropout=1 means nothing with to=" + to +
                     ": a fused kernel drops out weights without a tensor of them. Expected to=math.");
  return std::make_unique<AttentionRecipe>(*std::ranges::find(kKernels, to, &FusedKernel::word));
}

PolicyAnswer answer_of_attention(const Trace& trace) {
  return {.refusal = attention_refusal(trace), .setting = "to=...", .reason = "another kernel"};
}

const RegisterPolicy registered_attention{
    {.name = "attention",
     .sentence = "computes scaled_dot_product_attention by another fused kernel, or by PyTorch's operators",
     .kind = PolicyKind::recipe,
     .needs = {.timing = true, .allocations = true, .dataflow = true, .shapes = true},
     .parameters = {choice("to", kRequired, {"flash", "flash3", "flash4", "efficient", "cudnn", "math"},
                           "flash: FlashAttention-2, as PyTorch has it; flash3, flash4: those for Hopper's and "
                           "Blackwell's GPUs; efficient: xFormers' memory-efficient kernel; math: PyTorch's operators, "
                           "with scores in memory. The name may be left out: attention:flash."),
                    flag("dropout", false,
                         "1, with to=math: weights are dropped out, which a fused kernel does not show.")},
     .answer = answer_of_attention,
     .make_rewriter = attention_of}};

}  // namespace
}  // namespace memwall
