#include "models/workload/generate/gradient_scaler.h"

#include <cassert>

#include "models/workload/generate/multi_tensor.h"
#include "models/workload/generate/operators/operators.h"

namespace memwall {

bool GradientScaler::scales(const Recipe& recipe) {
  return recipe.precision == Precision::amp_fp16 ||
         (recipe.precision == Precision::fp16 && has_master_parameters(recipe));
}

GradientScaler::GradientScaler(Tape& tape, const Recipe& recipe) : tape_(tape) {
  if (!scales(recipe)) return;
  scale_ = tape.permanent("scale", {}, DataType::fp32, StorageKind::optimizer_state);
  tracker_ = tape.permanent("growth_tracker", {}, DataType::int32, StorageKind::optimizer_state);
}

Tensor GradientScaler::scaled(const Tensor& loss) { return enabled() ? mul(tape_, loss, scale_) : loss; }

// Both numbers are copied, as for any device that there may be gradients on (_MultiDeviceReplicator).
void GradientScaler::check_with(const Tensors& gradients, Tensor inverse) {
  assert(enabled());
  Tensor none = fill(tape_, "aten::full", {}, DataType::fp32);
  found_ = copy_of(tape_, none, "aten::_to_copy");
  Tensor factor = copy_of(tape_, inverse, "aten::_to_copy");
  const Tensors numbers{found_, factor}, result{found_};
  const ListWork work{.name = "aten::_amp_foreach_non_finite_check_and_unscale_",
                      .operator_class = OperatorClass::elementwise};
  list_kernel(tape_, work, {&gradients, &numbers}, {&gradients, &result});
}

void GradientScaler::unscale(const Tensors& gradients) {
  Tensor wide = cast(tape_, scale_, DataType::fp64);
  Tensor inverse = elementwise(tape_, "aten::reciprocal", {&wide}, {}, DataType::fp64);
  wide.reset();
  inverse = cast(tape_, inverse, DataType::fp32);
  check_with(gradients, std::move(inverse));
  read_on_host(tape_, found_);
}

Tensors GradientScaler::check(const Tensors& gradients) {
  check_with(gradients, fill(tape_, "aten::full", {}, DataType::fp32));
  Tensors numbers{add_number(tape_, found_)};  // the sum over devices
  numbers.push_back(mul_number(tape_, scale_));
  return numbers;
}

void GradientScaler::adapt() {
  if (!enabled()) return;
  TapeKernel work;
  work.name = "aten::_amp_update_scale_";
  work.operator_class = OperatorClass::elementwise;
  work.type = DataType::fp32;
  work.flops = 1;
  work.shape = {1};
  tape_.kernel(work, {&scale_, &tracker_, &found_}, {&scale_, &tracker_});
  found_.reset();
}

}  // namespace memwall
