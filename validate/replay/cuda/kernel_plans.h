// The kernels that stand for a schedule's: for matrix classes a cuBLASLt product of the op's FLOPs and bytes in its
// data type, for all others (and where cuBLASLt has no product) a kernel that streams its bytes and does its
// FLOPs meanwhile.
//
// What a kernel does follows from its KernelWork alone, so that it is the same in a schedule and by itself; operands
// only say where. A product reads scratch memory with random numbers of moderate size, on which its power
// depends, and writes what the op writes, or scratch. A streaming kernel goes over the operands once, then on over
// scratch. Scratch is larger than caches, and each launch goes on where the one before ended.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "validate/replay/backend.h"
#include "validate/replay/cuda/cublaslt.h"
#include "validate/replay/cuda/cuda_handles.h"
#include "validate/replay/product_shape.h"

namespace memwall {

class KernelPlans {
 public:
  // Takes scratch memory of the current device, at most a sixteenth of it.
  KernelPlans();

  // Plans a kernel and runs it once, if it is not planned yet: the driver loads it then, which may wait for
  // all streams, and so for ever where one waits for this thread. Threads may call it, and run, at once.
  void prepare(const KernelWork& work);
  // How much memory `run` needs beside, which no two streams may share.
  std::size_t workspace_bytes(const KernelWork& work);
  // How many launches it is.
  std::uint64_t launches(const KernelWork& work);
  // Queues it. `workspace`: of workspace_bytes, aligned to 256 bytes. Throws.
  void run(const KernelWork& work, std::span<const Operand> operands, cudaStream_t stream, void* workspace);

  // "cublaslt", "cublaslt.missing" (which products were replaced, and why), "scratch_bytes".
  Environment environment() const;

 private:
  struct Plan {
    std::unique_ptr<MatmulPlan> product;  // null = a streaming kernel
    ProductShape shape;
    std::size_t input_bytes = 0, output_bytes = 0;  // of an element
  };
  struct Hash {
    std::size_t operator()(const KernelWork& work) const;
  };
  // A piece of device memory of which each user takes the next part, around and around.
  class Area {
   public:
    explicit Area(std::size_t bytes) : memory_(bytes) {}
    unsigned char* data() const { return memory_.as<unsigned char>(); }
    std::size_t bytes() const { return memory_.bytes(); }
    // The next `bytes` in one piece, aligned to a row. REQUIRES: bytes <= bytes().
    unsigned char* take(std::size_t bytes);
    // Number of the first of the next `rows`, which may go around.
    std::uint32_t take_rows(std::uint32_t rows);

   private:
    DeviceBuffer memory_;
    std::atomic<std::uint64_t> used_{0};
  };

  const Plan& plan(const KernelWork& work);
  Plan make_plan(const KernelWork& work);
  void run_product(const Plan& plan, std::span<const Operand> operands, cudaStream_t stream, void* workspace);
  void run_streaming(const KernelWork& work, std::span<const Operand> operands, cudaStream_t stream);

  std::string why_no_library_;
  std::shared_ptr<const CublasLt> library_;
  Area read_, written_;
  unsigned grid_;
  CudaStream first_runs_;
  mutable std::shared_mutex mutex_;  // guards what follows
  std::unordered_map<KernelWork, Plan, Hash> plans_;
  std::vector<std::string> replaced_;  // sentences: products that cuBLASLt does not have
};

}  // namespace memwall
