// The CUDA back end: the schedule on a real GPU. Kernels are cuBLASLt products of the op's FLOPs and bytes
// (matrix classes), or streaming kernels that do its FLOPs and bytes; copies are cudaMemcpyAsync on the
// schedule's streams, events are CUDA events, NVMe is measurement/direct_file.h driven from a thread per queue.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "validate/replay/backend.h"

namespace memwall {

struct CudaBackendSettings {
  int device = 0;
  std::filesystem::path scratch;  // folder of the file that is the NVMe tier; "" = schedules that need one are refused
  Bytes file_bytes = GiB(8);
};

// Was this program built with CUDA? Without, make_cuda_backend throws.
bool cuda_is_built_in();
// "" if a device can be used, else a sentence that says what is missing: nvcc when this was built, the
// driver, a device. Cheap; makes no context. Sets CUDA_DEVICE_MAX_CONNECTIONS to 32 where it is not set: ask before
// other threads run.
std::string cuda_unavailable_reason();
// What figures depend on: the device, its clocks and its link, driver and CUDA, the computer around it. Throws
// UsageError as make_cuda_backend does.
Environment cuda_environment(int device);
// Throws UsageError with a sentence: built without CUDA, no driver, no device.
std::unique_ptr<Backend> make_cuda_backend(const CudaBackendSettings& settings);

}  // namespace memwall
