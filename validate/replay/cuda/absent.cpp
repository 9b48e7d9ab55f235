// Stands in for the CUDA back end in a build without nvcc.
#include "sim/error.h"
#include "validate/replay/cuda_backend.h"

namespace memwall {

bool cuda_is_built_in() { return false; }

std::string cuda_unavailable_reason() {
  return "the back end \"cuda\" is not part of this program: it was built without nvcc; build again where "
         "nvcc is on the PATH, or use --backend host.";
}

Environment cuda_environment(int) { throw UsageError(cuda_unavailable_reason()); }

std::unique_ptr<Backend> make_cuda_backend(const CudaBackendSettings&) { throw UsageError(cuda_unavailable_reason()); }

}  // namespace memwall
