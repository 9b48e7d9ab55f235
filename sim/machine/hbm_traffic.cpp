#include "sim/machine/hbm_traffic.h"

#include <algorithm>

namespace memwall {
namespace {

// The part of a working set that L2 no longer holds when it is needed again.
double missing_share(const Gpu& gpu, double working_set) {
  const double sets = working_set / static_cast<double>(gpu.l2_bytes);
  if (gpu.l2_lost <= gpu.l2_kept) return std::min(1.0, sets);
  return std::clamp((sets - gpu.l2_kept) / (gpu.l2_lost - gpu.l2_kept), 0.0, 1.0);
}

}  // namespace

double hbm_bytes(const Gpu& gpu, const Op& op) {
  const auto bytes = static_cast<double>(op.bytes);
  if (bytes <= 0 || gpu.l2_bytes <= 0 || gpu.l2_bandwidth <= 0) return std::max(bytes, 0.0);
  return bytes * missing_share(gpu, bytes / std::max<double>(op.kernels, 1));
}

Bytes hbm_traffic(const Gpu& gpu, BytesPerSecond bandwidth, const Op& op) {
  return static_cast<Bytes>(std::min(hbm_bytes(gpu, op), to_seconds(op.duration) * bandwidth));
}

}  // namespace memwall
