// Another precision: an fp32 step as it would be if its program computed products in TF32, ran under torch.autocast, or
// had all its numbers in 16 bit; or a step in bf16 (throughout) with its linear layers in fp8.
//
// TF32 changes what products cost. Under autocast products, convolutions and fused attention run in 16 bit, with the
// casts of their operands, of parameters once per pass, and of their gradients; what autograd keeps, and how long each
// storage lives, follows. In 16 bit throughout parameters, gradients and states of the optimizer are half as large.
#include <fmt/format.h>

#include <algorithm>

#include "policies/recipe/fp8_layers.h"
#include "policies/recipe/gradient_scaler.h"
#include "policies/recipe/precision_change.h"
#include "policies/trace/described.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/optimizer_step.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

std::string no_precision_for(const Trace& trace, const std::string& why) {
  return fmt::format("Policy 'precision' has no meaning for trace '{}': {}", trace.name, why);
}

bool is_product(const Op& op) {
  return op.kind == OpKind::kernel &&
         (op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::convolution);
}

bool is_narrow(DataType type) { return type == DataType::fp16 || type == DataType::bf16 || type == DataType::fp8; }

// What of an op another precision has no rule for, "" if nothing.
std::string op_refusal(const Trace& trace, OpId id) {
  const Op& op = trace.ops[id];
  if (op.graph_member || op.kind == OpKind::graph_launch)
    return described_op(trace, id) + " is in a CUDA graph; expected single calls of operators.";
  if (op.phase == Phase::recompute)
    return described_op(trace, id) +
           " runs forward again; expected a step without checkpointing (it may stand behind).";
  if (op.kind == OpKind::collective)
    return described_op(trace, id) +
           " is a collective; give the step of one rank, and ddp, fsdp or deepspeed beside it.";
  if (op.kind != OpKind::kernel) return "";
  if (op.phase == Phase::optimizer) return "";
  if (op.dispatch == Dispatch::compiled || !trace.strings[op.operator_name].starts_with("aten::"))
    return described_op(trace, id) + " is of no operator of PyTorch: in which type it would run is not told.";
  return "";
}

// What of the optimizer has no rule where its states change, or its place in backward.
std::string optimizer_obstacle(const Trace& trace, const PrecisionTarget& target) {
  const Optimizer found = find_optimizer(trace, Dataflow(trace));
  if (target.autocast && found.steps.size() > std::max<std::size_t>(1, trace.steps.size()))
    return "its optimizer runs inside backward, between casts of gradients; that is not implemented under autocast.";
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.kind != OpKind::kernel || op.phase != Phase::optimizer) continue;
    const std::string& name = trace.strings[op.operator_name];
    if (name.find("_amp_") != std::string::npos)
      return described_op(trace, id) + " is of a GradScaler, which this policy is not implemented with.";
    if (!target.autocast && !name.starts_with("aten::"))
      return described_op(trace, id) + " is of no operator of PyTorch: in which types its states would be is not told.";
  }
  return "";
}

// The first op whose numbers are narrower than fp32; kNoOp: none.
OpId first_narrow_op(const Trace& trace) {
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (trace.ops[id].kind == OpKind::kernel && is_narrow(trace.ops[id].data_type)) return id;
  return kNoOp;
}

std::string precision_refusal(const Trace& trace) {
  if (const OpId id = first_narrow_op(trace); id != kNoOp)
    return fmt::format("Policy 'precision' needs a step in fp32; {} is in {}.", described_op(trace, id),
                       to_string(trace.ops[id].data_type));
  if (passes(trace).empty()) return no_precision_for(trace, "no forward of it has a backward behind it.");
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (const std::string why = op_refusal(trace, id); !why.empty()) return no_precision_for(trace, why);
  const Dataflow flow(trace);
  const TypedStorages types(trace, flow);
  for (StorageId id = 0; id < trace.storages.size(); ++id)
    if (trace.storages[id].kind == StorageKind::parameter && types.holds_numbers(id)) return "";
  return no_precision_for(trace, "it has no parameter of which the shape says that its numbers are fp32.");
}

// torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32: numbers in memory stay fp32.
DataType products_before(const std::string& to) { return to == "tf32" ? DataType::fp32 : DataType::tf32; }
DataType products_after(const std::string& to) { return to == "tf32" ? DataType::tf32 : DataType::fp32; }
bool changes_products_alone(const std::string& to) { return to == "tf32" || to == "fp32"; }

std::string products_refusal(const Trace& trace, const std::string& to) {
  for (const Op& op : trace.ops)
    if (is_product(op) && op.data_type == products_before(to)) return "";
  return no_precision_for(trace,
                          fmt::format("no product or convolution of it is in {}.", to_string(products_before(to))));
}

Trace with_other_products(const Trace& trace, const Machine& machine, const Pricer& pricer, const std::string& to) {
  if (const std::string refusal = products_refusal(trace, to); !refusal.empty()) throw UsageError(refusal);
  TraceEdit edit(trace, machine.host);
  std::size_t changed = 0;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& before = trace.ops[id];
    if (!is_product(before) || before.data_type != products_before(to)) continue;
    Op op = before;
    op.data_type = products_after(to);
    const Shape& shape = trace.shapes[op.shape];
    op.duration =
        before.origin == Origin::modelled ? pricer.kernel(op, shape) : pricer.scaled(before, shape, op, shape);
    if (op.origin == Origin::measured) op.origin = Origin::transferred;
    edit.replace(id, op);
    ++changed;
  }
  Trace result = std::move(edit).apply();
  result.notes.push_back(fmt::format("precision: {} in {} instead of {}.", counted_text(changed, "product"),
                                     to_string(products_after(to)), to_string(products_before(to))));
  return result;
}

// As generated steps say it.
std::string words_of(const std::string& to) {
  if (changes_products_alone(to)) return "products in " + to;
  if (to == "fp8") return "fp8 in linear layers, the rest pure bf16";
  return to.starts_with("amp_") ? "autocast to " + to.substr(4) + ", parameters fp32" : "pure " + to;
}

// Of a step in bf16; one in fp32 is brought there first.
std::string fp8_refusal(const Trace& trace) {
  const OpId narrow = first_narrow_op(trace);
  if (narrow == kNoOp) return precision_refusal(trace);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.kind == OpKind::kernel && (op.data_type == DataType::fp8 || op.data_type == DataType::fp16))
      return fmt::format("Policy 'precision' puts linear layers of a step in fp32 or bf16 into fp8; {} is in {}.",
                         described_op(trace, id), to_string(op.data_type));
    if (op.kind == OpKind::kernel && op.phase == Phase::recompute)
      return no_precision_for(trace, op_refusal(trace, id));
  }
  const std::string why = fp8_obstacle(trace);
  if (why.empty()) return "";
  const bool autocast = std::ranges::any_of(trace.storages, [&](const Storage& s) {
    return s.kind == StorageKind::parameter && s.shape != 0 && trace.shapes[s.shape].size() > 1 &&
           s.bytes == elements_of(trace.shapes[s.shape]) * bytes_of(DataType::fp32);
  });
  return no_precision_for(trace, autocast
                                     ? "its parameters are fp32 and products run in 16 bit (autocast), beside which "
                                       "fp8 is not implemented; give a step in fp32, or in bf16 throughout."
                                     : "of fp8, " + why);
}

// torch._scaled_mm asks for compute capability 8.9, or an MI300. A machine without a GPU (0) is not asked.
std::string fp8_machine_refusal(const Machine& machine) {
  const bool has_fp8 =
      std::ranges::any_of(machine.gpu.peaks, [](const PeakRate& peak) { return peak.data_type == DataType::fp8; });
  if (has_fp8 || machine.gpu.compute_major == 0) return "";
  return fmt::format(
      "Policy 'precision': {} has no matrix units for fp8, and PyTorch refuses to run such products there. Expected a "
      "GPU "
      "that has them (Ada, Hopper, Blackwell, MI300), or bf16 or amp_bf16.",
      machine.gpu.name);
}

class Precision : public Rewriter {
 public:
  Precision(std::string to, PrecisionTarget target) : to_(std::move(to)), target_(target) {}

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    Trace result = changed(trace, machine, pricer);
    for (RecipeItem& item : result.recipe)
      if (item.what == "precision") item = {.what = item.what, .value = words_of(to_), .setting = ""};
    return result;
  }

 private:
  Trace changed(const Trace& trace, const Machine& machine, const Pricer& pricer) const {
    if (changes_products_alone(to_)) return with_other_products(trace, machine, pricer, to_);
    if (to_ != "fp8") return in_16_bit(trace, machine, pricer);
    if (const std::string why = fp8_refusal(trace); !why.empty()) throw UsageError(why);
    if (const std::string why = fp8_machine_refusal(machine); !why.empty()) throw UsageError(why);
    if (first_narrow_op(trace) != kNoOp && target_.loss_in_fp32)
      throw UsageError("Policy 'precision': loss_in_fp32=1 means nothing of trace '" + trace.name +
                       "', which is in bf16 already and shows its casts.");
    return first_narrow_op(trace) == kNoOp ? with_fp8_layers(in_16_bit(trace, machine, pricer), machine, pricer)
                                           : with_fp8_layers(trace, machine, pricer);
  }

  Trace in_16_bit(const Trace& trace, const Machine& machine, const Pricer& pricer) const {
    if (const std::string refusal = precision_refusal(trace); !refusal.empty()) throw UsageError(refusal);
    if (const std::string why = optimizer_obstacle(trace, target_); !why.empty())
      throw UsageError(no_precision_for(trace, why));
    PrecisionChange change(trace, machine, pricer, target_);
    Trace result = std::move(change).apply();
    if (to_ == "amp_fp16") result = with_gradient_scaler(result, machine, pricer, "precision");
    result.notes.push_back(
        fmt::format("precision: {} instead of fp32, with {} of operands in forward. Casts that the program asks for "
                    "itself, and that "
                    "do nothing in fp32, are not told.",
                    to_ == "fp8" ? "bf16" : to_, counted_text(change.casts(), "cast")));
    return result;
  }

  const std::string to_;
  const PrecisionTarget target_;
};

std::unique_ptr<Rewriter> precision_of(const PolicyArguments& a) {
  const std::string& to = a.choice("to");
  if (changes_products_alone(to) && a.flag("loss_in_fp32"))
    throw UsageError("Policy 'precision': loss_in_fp32=1 means nothing with to=" + to +
                     ", which leaves all numbers in fp32.");
  const PrecisionTarget target{.low = to.ends_with("fp16") ? DataType::fp16 : DataType::bf16,
                               .autocast = to.starts_with("amp_"),
                               .loss_in_fp32 = a.flag("loss_in_fp32")};
  return std::make_unique<Precision>(to, target);
}

PolicyAnswer answer_of_precision(const Trace& trace) {
  PolicyAnswer answer{.refusal = precision_refusal(trace), .setting = "to=...", .reason = "another precision"};
  if (!answer.refusal.empty() && fp8_refusal(trace).empty())
    return {.refusal = "", .setting = "to=fp8", .reason = "linear layers alone"};
  for (const char* const to : {"tf32", "fp32"})
    if (!answer.refusal.empty() && products_refusal(trace, to).empty())
      answer = {.refusal = "", .setting = std::string("to=") + to, .reason = "products alone"};
  return answer;
}

const RegisterPolicy registered_precision{
    {.name = "precision",
     .sentence = "computes an fp32 step in TF32, under autocast, or in 16 bit throughout; linear layers in fp8",
     .kind = PolicyKind::precision,
     .needs = {.timing = true, .allocations = true, .dataflow = true, .shapes = true},
     .parameters =
         {choice(
              "to", kRequired, {"fp32", "tf32", "bf16", "fp16", "amp_bf16", "amp_fp16", "fp8"},
              "fp32, tf32: products and convolutions alone; amp_bf16, amp_fp16: torch.autocast, with fp32 parameters, "
              "the latter with a GradScaler; bf16, fp16: parameters, gradients and states of the optimizer, too; fp8: "
              "linear layers as torchao's Float8Linear runs them, of a step in bf16 or, brought there first, in fp32. "
              "The name may be left out: precision:amp_bf16."),
          flag("loss_in_fp32", false,
               "1: the program casts its logits to fp32 before the loss, which a step in fp32 does not show.")},
     .answer = answer_of_precision,
     .make_rewriter = precision_of}};

}  // namespace
}  // namespace memwall
