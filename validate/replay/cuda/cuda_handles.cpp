#include "validate/replay/cuda/cuda_handles.h"

namespace memwall {

CudaError::CudaError(cudaError_t code, const std::string& call)
    : std::runtime_error(call + " failed: " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")."),
      code_(code) {}

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  (void)cudaGetLastError();
  throw CudaError(code, call);
}

void* driver_entry_point(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  check(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &result),
        "cudaGetDriverEntryPointByVersion");
#elif CUDART_VERSION >= 12000
  (void)version;
  check(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &result), "cudaGetDriverEntryPoint");
#else
  (void)version;
  check(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault), "cudaGetDriverEntryPoint");
  if (function != nullptr) result = cudaDriverEntryPointSuccess;
#endif
  if (result != cudaDriverEntryPointSuccess || function == nullptr)
    throw std::runtime_error(std::string("the CUDA driver has no function ") + name + ".");
  return function;
}

}  // namespace memwall
