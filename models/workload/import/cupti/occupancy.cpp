#include "models/workload/import/cupti/occupancy.h"

#include <algorithm>
#include <limits>

namespace memwall {
namespace {

constexpr std::uint64_t kThreadsPerWarp = 32, kRegistersPerUnit = 256;

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

std::uint64_t shared_per_block(const CuptiDevice& device, const CuptiDeviceWork& kernel) {
  const std::uint64_t reserved = device.capability >= 80 ? 1024 : 0;
  return rounded_up(kernel.shared_memory + reserved, device.capability >= 70 ? 128 : 256);
}

}  // namespace

double occupancy_percent(const CuptiDevice& device, const CuptiDeviceWork& kernel) {
  if (device.threads == 0 || kernel.threads == 0 || device.multiprocessors == 0) return 0;
  const std::uint64_t warps = (kernel.threads + kThreadsPerWarp - 1) / kThreadsPerWarp;
  std::uint64_t blocks = device.threads / kThreadsPerWarp / warps;
  if (device.blocks > 0) blocks = std::min<std::uint64_t>(blocks, device.blocks);
  if (device.registers > 0 && kernel.registers > 0)
    blocks =
        std::min(blocks, device.registers / rounded_up(kernel.registers * kThreadsPerWarp, kRegistersPerUnit) / warps);
  if (const std::uint64_t shared = shared_per_block(device, kernel); device.shared_memory > 0 && shared > 0)
    blocks = std::min(blocks, device.shared_memory / shared);
  const double filled = std::min(static_cast<double>(blocks), kernel.blocks / device.multiprocessors);
  return std::min(filled * kernel.threads / device.threads * 100, 100.0);
}

}  // namespace memwall
