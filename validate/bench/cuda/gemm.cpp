// gemm_TYPE: matrix products by cuBLASLt, squares and layers of real transformers. Random inputs in sets that take
// turns, so that no product finds its operands in the L2 cache; sampled elements are compared with double precision.
#include <algorithm>
#include <memory>
#include <string>

#include "validate/bench/benchmark.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/gemm_data.h"
#include "validate/bench/cuda/kernel_sampler.h"
#include "validate/bench/kernel_cases.h"
#include "validate/replay/cuda/cublaslt.h"

namespace memwall {
namespace {

std::size_t aligned(std::int64_t elements, std::size_t element_bytes) {
  return (static_cast<std::size_t>(elements) * element_bytes + 255) / 256 * 256;
}

// Several sets of A, B and D in one piece of device memory.
class GemmOperands {
 public:
  GemmOperands(const MatmulShape& shape, std::int64_t sets)
      : shape_(shape), sets_(sets), memory_(set_bytes(shape) * static_cast<std::size_t>(sets)) {}

  static std::size_t set_bytes(const MatmulShape& s) {
    const std::size_t in = matmul_input_bytes(s.data_type);
    return aligned(s.m * s.k, in) + aligned(s.n * s.k, in) + aligned(s.m * s.n, matmul_output_bytes(s.data_type));
  }
  std::byte* a(std::int64_t set) const {
    return memory_.as<std::byte>() + set_bytes(shape_) * static_cast<std::size_t>(set);
  }
  std::byte* b(std::int64_t set) const {
    return a(set) + aligned(shape_.m * shape_.k, matmul_input_bytes(shape_.data_type));
  }
  std::byte* d(std::int64_t set) const {
    return b(set) + aligned(shape_.n * shape_.k, matmul_input_bytes(shape_.data_type));
  }
  std::int64_t sets() const { return sets_; }

  void fill(std::uint64_t seed, cudaStream_t stream) const {
    for (std::int64_t set = 0; set < sets_; ++set) {
      const std::uint64_t own = seed * 1'000'003 + 2 * static_cast<std::uint64_t>(set);
      fill_gemm_input(shape_.data_type, a(set), shape_.m * shape_.k, own, stream);
      fill_gemm_input(shape_.data_type, b(set), shape_.n * shape_.k, own + 1, stream);
    }
  }
  // NaN in every data type of D.
  void poison(std::int64_t set, cudaStream_t stream) const {
    check(cudaMemsetAsync(d(set), 0xff, aligned(shape_.m * shape_.n, matmul_output_bytes(shape_.data_type)), stream),
          "cudaMemsetAsync");
  }

 private:
  MatmulShape shape_;
  std::int64_t sets_;
  DeviceBuffer memory_;
};

// Measures all cases of one data type.
class GemmBenchmark {
 public:
  GemmBenchmark(BenchmarkRun& run, DataType data_type, std::shared_ptr<const CublasLt> library)
      : run_(run), data_type_(data_type), library_(std::move(library)), workspace_(CublasLt::kMostWorkspace) {}

  void measure() {
    for (const GemmCase& c : gemm_cases(data_type_)) {
      if (run_.out_of_time()) return;
      Measurement m = run_.row({{"m", std::to_string(c.m)}, {"n", std::to_string(c.n)}, {"k", std::to_string(c.k)}});
      m.flops = gemm_flops(c);
      m.bytes = gemm_bytes(c, data_type_);
      try {
        measure_case(c, m);
      } catch (const NotApplicable& reason) {
        m.status = MeasurementStatus::not_applicable;
        m.note = reason.what();
      } catch (const std::exception& error) {
        note_verdict(m, error.what());
      }
      if (m.status == MeasurementStatus::measured) m.note = c.origin + "; " + m.note;
      run_.report(m);
    }
  }

 private:
  void measure_case(const GemmCase& c, Measurement& m) {
    const MatmulShape shape{data_type_, c.m, c.n, c.k};
    std::string why_not;
    const std::unique_ptr<MatmulPlan> plan = library_->plan(shape, why_not);
    if (!plan) throw NotApplicable(why_not);
    const GemmOperands operands(shape, sets_for(shape, m.bytes));
    const cudaStream_t stream = sampler_.stream();
    operands.fill(run_.settings().seed, stream);
    std::int64_t turn = 0;
    const auto multiply = [&](std::int64_t set) {
      plan->run(stream, operands.a(set), operands.b(set), operands.d(set), workspace_.data());
    };
    sampler_.sample(run_, m, [&] { multiply(turn++ % operands.sets()); });
    const std::int64_t last = operands.sets() - 1;
    operands.poison(last, stream);
    multiply(last);
    check_gemm(shape, operands.a(last), operands.b(last), operands.d(last), gemm_tolerance(data_type_),
               check_.begin(stream), stream);
    note_verdict(m, check_.verdict(stream));
  }

  // Throws NotApplicable where not even one set has room.
  std::int64_t sets_for(const MatmulShape& shape, double bytes) const {
    const std::int64_t largest =
        std::max({shape.m * shape.k * static_cast<std::int64_t>(matmul_input_bytes(data_type_)),
                  shape.n * shape.k * static_cast<std::int64_t>(matmul_input_bytes(data_type_)),
                  shape.m * shape.n * static_cast<std::int64_t>(matmul_output_bytes(data_type_))});
    if (static_cast<std::size_t>(largest) > run_.settings().largest_buffer)
      throw NotApplicable("a matrix of " + std::to_string(largest) +
                          " bytes is larger than the largest buffer allowed, " +
                          std::to_string(run_.settings().largest_buffer) + " bytes");
    const std::size_t room = free_device_bytes() / 4 * 3 / GemmOperands::set_bytes(shape);
    if (room == 0)
      throw NotApplicable("the device has no room for " + std::to_string(GemmOperands::set_bytes(shape)) + " bytes");
    return std::min(rotating_sets(bytes, l2_bytes()), static_cast<std::int64_t>(room));
  }

  BenchmarkRun& run_;
  DataType data_type_;
  std::shared_ptr<const CublasLt> library_;
  KernelSampler sampler_;
  DeviceCheck check_;
  DeviceBuffer workspace_;
};

void gemm(BenchmarkRun& run, DataType data_type) {
  require_device();
  int device = 0, major = 0, minor = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  std::string why_not = gemm_unsupported(data_type, major, minor);
  if (!why_not.empty()) throw NotApplicable(why_not);
  std::shared_ptr<const CublasLt> library = CublasLt::load(why_not);
  if (!library) throw NotApplicable(why_not);
  GemmBenchmark(run, data_type, std::move(library)).measure();
}

void gemm_bf16(BenchmarkRun& run) { gemm(run, DataType::bf16); }
void gemm_fp16(BenchmarkRun& run) { gemm(run, DataType::fp16); }
void gemm_tf32(BenchmarkRun& run) { gemm(run, DataType::tf32); }
void gemm_fp32(BenchmarkRun& run) { gemm(run, DataType::fp32); }
void gemm_fp8(BenchmarkRun& run) { gemm(run, DataType::fp8); }

const RegisterBenchmark registered_gemm_bf16{
    {"gemm_bf16", "Matrix products of bf16 by cuBLASLt: squares and transformer layers; peak rate and efficiency.",
     BenchmarkPlace::cuda, 10, gemm_bf16}};
const RegisterBenchmark registered_gemm_tf32{
    {"gemm_tf32", "Matrix products of fp32 data in tf32 arithmetic by cuBLASLt: peak rate and efficiency.",
     BenchmarkPlace::cuda, 30, gemm_tf32}};
const RegisterBenchmark registered_gemm_fp16{{"gemm_fp16",
                                              "Matrix products of fp16 by cuBLASLt: peak rate and efficiency.",
                                              BenchmarkPlace::cuda, 31, gemm_fp16}};
const RegisterBenchmark registered_gemm_fp32{
    {"gemm_fp32", "Matrix products of fp32 without tf32 by cuBLASLt: peak rate and efficiency.", BenchmarkPlace::cuda,
     32, gemm_fp32}};
const RegisterBenchmark registered_gemm_fp8{{"gemm_fp8",
                                             "Matrix products of fp8 (e4m3) by cuBLASLt: peak rate and efficiency.",
                                             BenchmarkPlace::cuda, 33, gemm_fp8}};

}  // namespace
}  // namespace memwall
