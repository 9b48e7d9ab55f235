// Can a GPU be used here, and what is it?
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sim/error.h"
#include "validate/replay/cuda/cuda_handles.h"
#include "validate/replay/cuda/nvml.h"
#include "validate/replay/cuda_backend.h"
#include "validate/replay/host_computer.h"

namespace memwall {
namespace {

constexpr const char* kInstead = "; expected an NVIDIA GPU and its driver. --backend host works without.";

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::uint64_t attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return static_cast<std::uint64_t>(std::max(0, value));
}

}  // namespace

bool cuda_is_built_in() { return true; }

std::string cuda_unavailable_reason() {
  // A stream that waits for a storage queue must not hold up others that share its hardware queue; by default there
  // are 8. The driver reads it once, at the latest when it makes a context. Whoever has set it is left to it.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int devices = 0;
  const cudaError_t code = cudaGetDeviceCount(&devices);
  if (code == cudaSuccess && devices > 0) return "";
  (void)cudaGetLastError();
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  const std::string cannot = "the back end \"cuda\" cannot be used: ";
  if (driver == 0) return cannot + "no CUDA driver is installed on this computer" + kInstead;
  if (code == cudaErrorInsufficientDriver)
    return cannot + "the CUDA driver is made for CUDA " + version_text(driver) + ", this program for CUDA " +
           version_text(CUDART_VERSION) + "; expected a newer driver, or a build with an older CUDA.";
  if (code == cudaSuccess || code == cudaErrorNoDevice)
    return cannot + "the CUDA driver (CUDA " + version_text(driver) + ") finds no device" + kInstead;
  return cannot + "cudaGetDeviceCount failed: " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")" +
         kInstead;
}

namespace {

int gpu_count() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

}  // namespace

Environment cuda_environment(int device) {
  if (const std::string reason = cuda_unavailable_reason(); !reason.empty()) throw UsageError(reason);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  int runtime = 0, driver = 0;
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  char pci_bus_id[32] = "";
  check(cudaDeviceGetPCIBusId(pci_bus_id, sizeof pci_bus_id, device), "cudaDeviceGetPCIBusId");
  Environment environment = {
      {"backend", "cuda"},
      {"gpu.name", properties.name},
      {"gpu.compute_capability", std::to_string(properties.major) + "." + std::to_string(properties.minor)},
      {"gpu.memory_bytes", std::to_string(properties.totalGlobalMem)},
      {"gpu.multiprocessors", std::to_string(properties.multiProcessorCount)},
      {"gpu.clock_hz", std::to_string(1000 * attribute(cudaDevAttrClockRate, device))},
      {"gpu.memory_clock_hz", std::to_string(1000 * attribute(cudaDevAttrMemoryClockRate, device))},
      {"gpu.memory_bus_bits", std::to_string(attribute(cudaDevAttrGlobalMemoryBusWidth, device))},
      {"gpu.l2_bytes", std::to_string(attribute(cudaDevAttrL2CacheSize, device))},
      {"gpu.threads_per_multiprocessor", std::to_string(properties.maxThreadsPerMultiProcessor)},
      {"gpu.count", std::to_string(gpu_count())},
      {"gpu.copy_engines", std::to_string(attribute(cudaDevAttrAsyncEngineCount, device))},
      {"cuda", version_text(runtime)},
      {"cuda.driver_api", version_text(driver)},
  };
  for (auto& entry : nvml_environment(pci_bus_id)) environment.push_back(std::move(entry));
  environment.emplace_back("cpu.name", processor_name());
  environment.emplace_back("cpu.count", std::to_string(allowed_cores().size()));
  if (const std::string kernel = kernel_name(); !kernel.empty()) environment.emplace_back("kernel", kernel);
  return environment;
}

}  // namespace memwall
