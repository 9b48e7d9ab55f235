// What the kernel benchmarks run: shapes of matrix products and of memory-bound kernels, with the work that each
// does. Plain functions without a GPU in them, shared by the CUDA benchmarks and their tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/op.h"

namespace memwall {

// D[m][n] = sum over k of A[m][k] * B[n][k]; see replay/cuda/cublaslt.h for the types that a data type stands for.
struct GemmCase {
  std::int64_t m = 0, n = 0, k = 0;
  std::string origin;  // "square", "GPT-2 124M QKV; GPT-2 124M MLP up, weight gradient": all that have this shape
};

// Each shape once, most valuable first: large squares, layers of real transformers, their weight gradients, small
// squares. bf16 has them at 8192, 4096 and 16384 tokens, others at 4096 only. REQUIRES: bf16, fp16, tf32, fp32, fp8.
std::vector<GemmCase> gemm_cases(DataType data_type);

double gemm_flops(const GemmCase& c);  // a multiply-add is two
// Each of A, B and D once.
double gemm_bytes(const GemmCase& c, DataType data_type);
// "" where a device of this compute capability has the data type, else what it lacks.
std::string gemm_unsupported(DataType data_type, int major, int minor);

// How far an element of D may be from the exact product of inputs in (-1, 1):
// relative * |exact| + per_root_k * sqrt(k). The exact element has standard deviation sqrt(k) / 3.
struct GemmTolerance {
  double relative = 0, per_root_k = 0;
};
GemmTolerance gemm_tolerance(DataType data_type);

// Memory-bound kernels on rows of `columns` elements.
enum class StreamingKernel : std::uint8_t {
  normalization,  // layer norm forward, bf16, rows of 4096; mean and deviation of each row kept in fp32
  softmax,        // bf16, rows of 2048
  elementwise,    // GELU (tanh form), bf16
  reduction,      // each row of 4096 bf16 to its fp32 sum
  optimizer       // fused Adam, fp32: parameter, gradient and two moments
};
std::string_view to_string(StreamingKernel kernel);

struct StreamingCase {
  StreamingKernel kernel = StreamingKernel::elementwise;
  std::int64_t rows = 0, columns = 0;
  std::int64_t elements() const { return rows * columns; }
};

// From the smallest (one row) in powers of four up to 1 GiB of traffic, or `most_bytes` where that is less.
std::vector<StreamingCase> streaming_cases(StreamingKernel kernel, double most_bytes);
// Device memory traffic of one launch: what it must read and write, each once.
double streaming_bytes(const StreamingCase& c);
double streaming_flops(const StreamingCase& c);

// How many sets of `bytes` to take in turn, so that when one comes round again the L2 cache has forgotten it:
// together at least twice the cache, 1 to 8192.
std::int64_t rotating_sets(double bytes, double l2_bytes);

enum class NcclCollective : std::uint8_t { all_gather, reduce_scatter, all_reduce };
// What each rank sends over its links (nccl-tests' bus bytes) where the whole buffer has `bytes`.
double nccl_wire_bytes(NcclCollective collective, double bytes, int ranks);

}  // namespace memwall
