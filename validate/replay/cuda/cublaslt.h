// cuBLASLt, opened at run time: matrix products as frameworks run them.
//
//   std::string why_not;
//   if (const auto library = CublasLt::load(why_not)) {
//     const auto plan = library->plan({DataType::bf16, 4096, 4096, 4096}, why_not);
//     plan->run(stream, a, b, d, workspace);
//
// A product is D[m][n] = sum over k of A[m][k] * B[n][k], all three row-major: y = x W^T of a linear layer with
// m tokens, k inputs, n outputs. In cuBLAS's column-major terms that is the layout "TN", the one that fp8 needs.
//
// data type | A, B      | D    | arithmetic
// bf16      | bf16      | bf16 | CUBLAS_COMPUTE_32F
// fp16      | fp16      | fp16 | CUBLAS_COMPUTE_32F
// tf32      | fp32      | fp32 | CUBLAS_COMPUTE_32F_FAST_TF32
// fp32      | fp32      | fp32 | CUBLAS_COMPUTE_32F, which uses no tf32: as PyTorch's default
// fp8       | e4m3      | bf16 | CUBLAS_COMPUTE_32F, scales of 1 in device memory, no fast accumulation
// fp64      | fp64      | fp64 | CUBLAS_COMPUTE_64F
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>

#include "validate/replay/matmul_shape.h"

namespace memwall {

// The algorithm that cuBLASLt's heuristics put first. Made for the device that is current; may be run on several
// streams at once if each run has a workspace of its own.
class MatmulPlan {
 public:
  virtual ~MatmulPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;  // 0 = none needed
  // Queues the product, beta = 0. Pointers are device memory, aligned to 256 bytes. Throws std::runtime_error.
  virtual void run(cudaStream_t stream, const void* a, const void* b, void* d, void* workspace) const = 0;
};

class CublasLt : public std::enable_shared_from_this<CublasLt> {
 public:
  // Most that a plan's workspace takes: what PyTorch gives cuBLASLt on Hopper.
  static constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;

  // Null where there is no such library, or it does not work with this device and driver; `why_not` says so in a
  // sentence. REQUIRES: a device is current.
  static std::shared_ptr<const CublasLt> load(std::string& why_not);
  virtual ~CublasLt() = default;

  virtual std::string version() const = 0;  // "13.0.2"
  // Null where cuBLASLt has no algorithm for it on the current device; `why_not` says so. The plan keeps the
  // library open. REQUIRES: m, n, k > 0.
  virtual std::unique_ptr<MatmulPlan> plan(const MatmulShape& shape, std::string& why_not) const = 0;
};

}  // namespace memwall
