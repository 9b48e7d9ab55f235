// The memory of NVIDIA GPUs as their driver reports it: NVML, opened when it is needed, so that memwall builds and runs
// where there is no driver.
//
// Declarations follow NVIDIA's NVML API reference (nvmlDeviceGetMemoryInfo and its struct nvmlMemory_t, version 1).
#pragma once

#include <memory>
#include <string>

#include "sim/units.h"

namespace memwall {

struct GpuMemoryUse {
  Bytes total = 0, used = 0;  // the whole device, all processes; `used` holds what the driver keeps for itself
};

class Nvml {
 public:
  // "libnvidia-ml.so.1" is the driver's. Throws UsageError: the library is not there, is none, or finds no driver.
  explicit Nvml(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Both throw UsageError for a GPU that is not there, and where the driver refuses.
  std::string name(unsigned index) const;
  GpuMemoryUse memory(unsigned index) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace memwall
