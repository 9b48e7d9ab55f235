// NVML, opened at run time: what the CUDA runtime does not say of a device.
#pragma once

#include <string>

#include "validate/measurement/measurement.h"

namespace memwall {

// "driver", "gpu.power_limit_watts", "gpu.clock_now_hz", "pcie.generation", "pcie.width" and the most that device
// and slot could do, as far as the driver says; empty where NVML is absent. `pci_bus_id`: of the device, as
// cudaDeviceGetPCIBusId writes it.
Environment nvml_environment(const std::string& pci_bus_id);

}  // namespace memwall
