#include "models/workload/import/trace_coverage.h"

#include <algorithm>

namespace memwall {

std::vector<Decision> coverage_of(const Trace& trace) {
  std::uint64_t device = 0, measured = 0, used = 0, kernels = 0, classed = 0, flops = 0, bytes = 0, shapes = 0;
  for (const Op& op : trace.ops) {
    if (!runs_on_device(op.kind)) continue;
    ++device;
    measured += op.origin == Origin::measured;
    used += op.use_count > 0;
    if (op.kind != OpKind::kernel) continue;
    ++kernels;
    classed += op.operator_class != OperatorClass::other;
    flops += op.flops > 0;
    bytes += op.bytes > 0;
    shapes += op.shape != 0;
  }
  const auto kinds = static_cast<std::uint64_t>(std::count_if(
      trace.storages.begin(), trace.storages.end(), [](const Storage& s) { return s.kind != StorageKind::unknown; }));
  std::vector<Decision> all;
  const auto add = [&](const char* subject, const char* sentence, std::uint64_t covered, std::uint64_t of) {
    if (of > 0) all.push_back({subject, sentence, covered, of});
  };
  add("trace: measured durations", "Device ops whose duration the file has; others a model must price.", measured,
      device);
  add("trace: uses", "Device ops that name a storage which they read or write.", used, device);
  add("trace: operator classes", "Kernels of a known class, by the name of their operator, else by their own.", classed,
      kernels);
  add("trace: FLOPs", "Kernels with FLOPs; only matrix products, convolutions and attention need them.", flops,
      kernels);
  add("trace: bytes", "Kernels with their memory traffic.", bytes, kernels);
  add("trace: shapes", "Kernels with the shape of their work.", shapes, kernels);
  add("trace: storage kinds", "Storages of which it is known what they are for.", kinds, trace.storages.size());
  return all;
}

}  // namespace memwall
