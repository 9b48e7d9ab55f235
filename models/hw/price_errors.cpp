#include "models/hw/price_errors.h"

namespace memwall {
namespace {

// Products and fused attention are priced by their shapes where the file says how, and then have that error.
double residual_of(const Gpu& gpu, OperatorClass operator_class) {
  if (operator_class == OperatorClass::gemm && gpu.matrix.residual > 0) return gpu.matrix.residual;
  if (operator_class == OperatorClass::attention)
    for (const AttentionCost& cost : gpu.attention)
      if (cost.kernel == AttentionKernel::flash_attention_2 && cost.residual > 0) return cost.residual;
  for (const KernelEfficiency& e : gpu.efficiencies)
    if (e.operator_class == operator_class) return e.residual;
  return 0;
}

}  // namespace

std::vector<PriceError> price_errors_of(const Machine& machine) {
  std::vector<PriceError> errors;
  const auto add = [&](OpKind kind, OperatorClass operator_class, double residual) {
    if (residual > 0) errors.push_back({kind, operator_class, residual});
  };
  for (const KernelEfficiency& e : machine.gpu.efficiencies)
    add(OpKind::kernel, e.operator_class, residual_of(machine.gpu, e.operator_class));
  if (!machine.fabrics.empty()) add(OpKind::collective, OperatorClass::other, machine.fabrics.front().residual);
  add(OpKind::host_work, OperatorClass::other, machine.host.framework_residual);
  return errors;
}

}  // namespace memwall
