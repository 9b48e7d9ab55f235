#include "policies/sharding/deepspeed_host_gradients.h"

#include <algorithm>

namespace memwall {

HostGradients::HostGradients(DeepSpeedProgram& program, const FlatLayout& layout, const DeepSpeedSettings& settings)
    : p_(program) {
  if (!settings.offloads_optimizer() || settings.stage > 2) return;
  std::int64_t elements = 0;
  Bytes largest = 0;
  for (const FlatGroup& group : layout.groups()) {
    elements += group.partition;
    for (const StorageId id : group.parameters) largest = std::max(largest, layout.of(id).elements * group.element);
  }
  gradients_ = p_.host_storage(4 * elements, StorageKind::gradient, "fp32_gradients");
  earlier_ = settings.updates_beside() ? p_.host_storage(4 * elements, StorageKind::gradient, "earlier_fp32_gradients")
                                       : gradients_;
  returned_ = p_.device_storage(largest, StorageKind::workspace, 0, "temp_grad_buffer_for_gpu_offload");
  p_.edit().tables().storages[returned_].preexisting = true;
}

StorageId HostGradients::accumulator(const ReducedGradient& gradient) {
  const auto [found, is_new] = accumulators_.try_emplace(gradient.base, kNoStorage);
  if (is_new)
    found->second =
        p_.host_storage(gradient.elements * gradient.element, StorageKind::gradient, "accumulated_gradient");
  return found->second;
}

void HostGradients::take(InsertionPoint point, std::uint16_t stream, StorageId source, const ReducedGradient& gradient,
                         bool later, bool last) {
  const Bytes whole = gradient.elements * gradient.element;
  if (later) {
    p_.copy(point, stream, whole, accumulator(gradient), {returned_});
    p_.kernel(point, stream, "accumulate", 3 * whole, {source, returned_}, {source});
  }
  if (!last) return p_.copy(point, stream, whole, source, {accumulator(gradient)});
  p_.kernel(point, stream, "norm", gradient.own * gradient.element, {source}, {});
  const StorageId wide = p_.device_storage(4 * gradient.own, StorageKind::gradient, stream, "fp32_slice");
  p_.edit().alloc(point, wide);
  p_.kernel(point, stream, "cast_to_fp32", gradient.own * (gradient.element + 4), {source}, {wide});
  p_.copy(point, stream, 4 * gradient.own, wide, {gradients_});
  p_.edit().free(point, wide);
}

}  // namespace memwall
