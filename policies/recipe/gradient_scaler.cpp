#include "policies/recipe/gradient_scaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "policies/recipe/list_writer.h"
#include "policies/recipe/loss_division.h"
#include "policies/recipe/modelled_op.h"
#include "policies/recipe/updated_parameters.h"
#include "policies/trace/described.h"
#include "policies/trace/optimizer_step.h"
#include "policies/trace/trace_edit.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr ListCall kScalerCopy{
    .name = "aten::_to_copy", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 0};

constexpr ListCall kScalerFill{
    .name = "aten::full", .operator_class = OperatorClass::memory, .flops_per_element = 0, .lists = 0};

// The one op of a fused optimizer's step; kNoOp: there is none, or several.
OpId fused_op(const Trace& trace, const OptimizerStep& step) {
  OpId found = kNoOp;
  for (const OpId id : step.ops)
    if (trace.strings[trace.ops[id].operator_name].starts_with("aten::_fused_")) {
      if (found != kNoOp) return kNoOp;
      found = id;
    }
  return found;
}

ListCall one_kernel(std::string_view name) {
  return {.name = name, .operator_class = OperatorClass::elementwise, .lists = 0};
}

// torch/amp/grad_scaler.py
class ScalerWriter {
 public:
  ScalerWriter(const Trace& trace, const Machine& machine, const Pricer& pricer, const std::string& policy)
      : t_(trace), flow_(trace), pricer_(pricer), policy_(policy), edit_(trace, machine.host) {
    scale_ = {add("scale"), 1, DataType::fp32};
    tracker_ = {add("growth_tracker"), 1, DataType::int32};
  }

  Trace apply() && {
    for (const Pass& pass : passes(t_)) scale(pass, *loss_of(t_, flow_, pass));
    for (const OptimizerStep& step : find_optimizer(t_, flow_).steps) {
      const OpId fused = fused_op(t_, step);
      const ListedTensor found = fused == kNoOp ? unscale(step) : check(step, fused);
      adapt(step, found);
    }
    return std::move(edit_).apply();
  }

 private:
  StorageId add(std::string_view label) {
    const StorageId id =
        edit_.builder().add_storage(bytes_of(DataType::fp32), StorageKind::optimizer_state, "hbm", label, true);
    edit_.tables().storages[id].shape = edit_.tables().shapes.intern({1});
    return id;
  }

  // Outside of all modules.
  Op like(OpId id) const {
    Op op = t_.ops[id];
    op.module = 0;
    return op;
  }

  void scale(const Pass& pass, const Loss& loss) {
    const Op forward = like(loss.made), backward = like(loss.seeded);
    ListWriter before(edit_, {pass.backward, false}, forward, pricer_);
    const TensorList value{{loss.value, 1, DataType::fp32}}, scale{scale_};
    const TensorList scaled{before.make("aten::mul", value.front())};
    before.call(one_kernel("aten::mul"), {&value, &scale}, {&scaled});
    ListWriter behind(edit_, {loss.seeded, true}, backward, pricer_);
    const TensorList seed{{loss.seed, 1, DataType::fp32}};
    const TensorList gradient{behind.make("aten::mul", seed.front())};
    behind.call(one_kernel("aten::mul"), {&seed, &scale}, {&gradient});
    OpId last = loss.seeded;
    for (const Touch& touch : flow_.touches(loss.seed))
      if (touch.op > loss.seeded) {
        edit_.repoint(touch.op, loss.seed, gradient.front().storage);
        last = touch.op;
      }
    const Op reader = like(last);
    ListWriter(edit_, {last, true}, reader, pricer_).drop(gradient.front());
    OpId end = pass.backward;
    for (OpId id = pass.backward; id < pass.end; ++id)
      if (t_.ops[id].phase == Phase::backward) end = id;
    ListWriter(edit_, {end, true}, backward, pricer_).drop(scaled.front());
  }

  // Divides all gradients and checks them; the host waits for the answer. Both numbers are copied, as for any device
  // that there may be gradients on.
  ListedTensor unscale(const OptimizerStep& step) {
    const Op beside = like(step.ops.front());
    ListWriter writer(edit_, {step.ops.front(), false}, beside, pricer_);
    const auto number = [&](std::string_view label, DataType type) {
      return writer.make(label, {scale_.storage, 1, type});
    };
    const TensorList scale{scale_};
    const TensorList wide{number("aten::_to_copy", DataType::fp64)};
    writer.call(kScalerCopy, {&scale}, {&wide});
    const TensorList reciprocal{number("aten::reciprocal", DataType::fp64)};
    writer.call(one_kernel("aten::reciprocal"), {&wide}, {&reciprocal});
    writer.drop(wide.front());
    const TensorList inverse{number("aten::_to_copy", DataType::fp32)};
    writer.call(kScalerCopy, {&reciprocal}, {&inverse});
    writer.drop(reciprocal.front());
    const TensorList found = check_with(writer, step, inverse);
    read_on_host(step, found.front());
    return found.front();
  }

  // Whether there is an infinity among gradients that are multiplied by a number, which is dropped.
  TensorList check_with(ListWriter& writer, const OptimizerStep& step, const TensorList& inverse) {
    const auto number = [&](std::string_view label) { return writer.make(label, {scale_.storage, 1, DataType::fp32}); };
    const TensorList none{number("aten::full")};
    writer.call(kScalerFill, {}, {&none});
    const TensorList found{number("aten::_to_copy")};
    writer.call(kScalerCopy, {&none}, {&found});
    const TensorList factor{number("aten::_to_copy")};
    writer.call(kScalerCopy, {&inverse}, {&factor});
    const TensorList gradients = gradients_of(step);
    writer.call(
        {.name = "aten::_amp_foreach_non_finite_check_and_unscale_", .operator_class = OperatorClass::elementwise},
        {&gradients, &found, &factor}, {&gradients, &found});
    for (const TensorList* temporary : {&factor, &none, &inverse}) writer.drop(temporary->front());
    return found;
  }

  TensorList gradients_of(const OptimizerStep& step) const {
    TensorList gradients;
    for (const UpdatedParameter& p : updated_parameters(t_, flow_, step, policy_))
      gradients.push_back({p.gradient, p.elements, p.type});
    return gradients;
  }

  // A fused optimizer divides gradients and looks at the answer itself (_step_supports_amp_scaling): nobody waits. Both
  // numbers are those of all devices. Adam's counters go back where there was an infinity.
  ListedTensor check(const OptimizerStep& step, OpId fused) {
    const Op beside = like(step.ops.front());
    ListWriter writer(edit_, {step.ops.front(), false}, beside, pricer_);
    const auto number = [&](std::string_view label) { return writer.make(label, {scale_.storage, 1, DataType::fp32}); };
    const TensorList one{number("aten::full")}, scale{scale_};
    writer.call(kScalerFill, {}, {&one});
    const TensorList found = check_with(writer, step, one);
    const TensorList all{number("aten::add")};
    writer.call(one_kernel("aten::add"), {&found}, {&all});
    const TensorList factor{number("aten::mul")};
    writer.call(one_kernel("aten::mul"), {&scale}, {&factor});
    give_numbers(step, fused, all.front(), factor.front());
    const Op behind = like(fused);
    ListWriter end(edit_, {fused, true}, behind, pricer_);
    if (const TensorList counters = counters_of(step); !counters.empty()) {
      const TensorList subtracted(counters.size(), all.front());
      end.call({.name = "aten::_foreach_sub_", .lists = 2}, {&counters, &subtracted}, {&counters});
    }
    for (const TensorList* temporary : {&factor, &all}) end.drop(temporary->front());
    return found.front();
  }

  // With them it writes the divided gradients back. (Captures count that in any case: its schema says so.)
  void give_numbers(const OptimizerStep& step, OpId fused, const ListedTensor& found, const ListedTensor& factor) {
    Op op = t_.ops[fused];
    std::vector<Use> uses(t_.uses_of(op).begin(), t_.uses_of(op).end());
    for (const ListedTensor& number : {found, factor}) {
      uses.push_back({number.storage, 0, Access::read});
      op.bytes += bytes_of(number.type);
    }
    for (const ListedTensor& gradient : gradients_of(step)) {
      const auto writes = [&](const Use& u) { return u.storage == gradient.storage && u.access == Access::write; };
      if (std::ranges::any_of(uses, writes)) continue;
      uses.push_back({gradient.storage, 0, Access::write});
      op.bytes += gradient.elements * bytes_of(gradient.type);
    }
    if (op.origin == Origin::measured) op.origin = Origin::transferred;
    const Shape& shape = t_.shapes[op.shape];
    op.duration =
        op.origin == Origin::modelled ? pricer_.kernel(op, shape) : pricer_.scaled(t_.ops[fused], shape, op, shape);
    edit_.replace(fused, op, uses);
  }

  // Of steps, on the device: what _foreach_add_ counts up before.
  TensorList counters_of(const OptimizerStep& step) const {
    TensorList counters;
    for (const OpId id : step.ops) {
      if (t_.strings[t_.ops[id].operator_name] != "aten::_foreach_add_") continue;
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::write && t_.storages[use.storage].kind == StorageKind::optimizer_state &&
            t_.storages[use.storage].bytes == bytes_of(DataType::fp32))
          counters.push_back({use.storage, 1, DataType::fp32});
    }
    return counters;
  }

  void read_on_host(const OptimizerStep& step, const ListedTensor& number) {
    Op op = modelled_op(OpKind::copy, like(step.ops.front()));
    op.name = op.operator_name = edit_.tables().strings.intern("aten::_local_scalar_dense");
    op.wait_for = WaitFor::own_op;
    op.bytes = bytes_of(number.type);
    op.from = edit_.tables().place("hbm");
    op.to = edit_.tables().place("host");
    op.pageable = true;
    op.framework_calls = 1;
    op.host_gap = edit_.costs().eager_optimizer;
    op.host_cost = edit_.costs().copy_call;
    op.return_delay = edit_.costs().synchronize_return;
    op.duration = pricer_.copy("hbm", "host", op.bytes, true);
    edit_.insert_complete({step.ops.front(), false}, op, {{number.storage, 0, Access::read}});
  }

  // Behind what the update itself has given back.
  void adapt(const OptimizerStep& step, const ListedTensor& found) {
    OpId end = step.ops.back();
    while (end + 1 < t_.ops.size() && t_.ops[end + 1].kind == OpKind::free &&
           t_.storages[t_.ops[end + 1].target].kind != StorageKind::gradient)
      ++end;
    const Op beside = like(step.ops.back());
    ListWriter writer(edit_, {end, true}, beside, pricer_);
    const TensorList numbers{scale_, tracker_, found}, adapted{scale_, tracker_};
    ListCall call = one_kernel("aten::_amp_update_scale_");
    call.flops_per_element = 1.0 / 3;  // one in all, of three numbers
    writer.call(call, {&numbers}, {&adapted});
    writer.drop(found);
  }

  const Trace& t_;
  const Dataflow flow_;
  const Pricer& pricer_;
  const std::string& policy_;
  TraceEdit edit_;
  ListedTensor scale_, tracker_;
};

}  // namespace

std::string scaler_obstacle(const Trace& trace) {
  const Dataflow flow(trace);
  for (const Pass& pass : passes(trace))
    if (!loss_of(trace, flow, pass)) return "which number is its loss is not told.";
  const Optimizer optimizer = find_optimizer(trace, flow);
  if (optimizer.steps.empty()) return "no op of it updates parameters with states of an optimizer.";
  if (optimizer.steps.size() > std::max<std::size_t>(1, trace.steps.size()))
    return "its optimizer runs inside backward.";
  for (const OptimizerStep& step : optimizer.steps)
    for (const OpId id : step.ops)
      if (trace.strings[trace.ops[id].operator_name].starts_with("aten::_fused_") && fused_op(trace, step) != id)
        return described_op(trace, id) + " is one of several fused updates of a step; expected one.";
  return "";
}

Trace with_gradient_scaler(const Trace& trace, const Machine& machine, const Pricer& pricer,
                           const std::string& policy) {
  if (const std::string why = scaler_obstacle(trace); !why.empty())
    throw UsageError(fmt::format("Policy '{}' cannot put a GradScaler into trace '{}': {}", policy, trace.name, why));
  return ScalerWriter(trace, machine, pricer, policy).apply();
}

}  // namespace memwall
