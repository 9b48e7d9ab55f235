#include "models/workload/flops.h"

namespace memwall {

double convolution_flops(std::span<const std::int64_t> output, std::span<const std::int64_t> weight) {
  if (output.size() < 2 || weight.size() < 2) return 0;
  double flops = 2 * static_cast<double>(output[0]);
  for (const std::int64_t size : output.subspan(2)) flops *= static_cast<double>(size);
  for (const std::int64_t size : weight) flops *= static_cast<double>(size);
  return flops;
}

}  // namespace memwall
