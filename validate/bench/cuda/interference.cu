// A copy beside a kernel: what each costs the other, for a kernel that is bound by device memory and for one
// that is bound by arithmetic.
#include <algorithm>
#include <cmath>

#include "validate/bench/cuda/bandwidth_kernels.h"
#include "validate/bench/cuda/contention.h"
#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"

namespace memwall {
namespace {

constexpr std::size_t kSmallestInterference = std::size_t{1} << 20;
constexpr std::size_t kLargestInterference = std::size_t{256} << 20;
constexpr double kKernelSeconds = 1e-3;
constexpr unsigned kThreadsInterference = 256;

// The logistic map: numbers in (0, 1) that never settle, as constants would draw less power than data do. No
// contraction, so that host and device agree to the bit.
__host__ __device__ float next_number(float x) {
  const float t = fmaf(-x, x, x);
#ifdef __CUDA_ARCH__
  return __fmul_rn(3.99f, t);
#else
  return 3.99f * t;
#endif
}
constexpr double kFlopsPerNumber = 3;
constexpr unsigned kChains = 4;  // per thread, independent of each other

__host__ __device__ float first_number(unsigned thread, unsigned chain) {
  return static_cast<float>((thread * kChains + chain) % 997 + 1) / 1000.0f;
}

// Arithmetic in registers only.
__global__ void iterate(float* results, unsigned steps) {
  const unsigned number = blockIdx.x * blockDim.x + threadIdx.x;
  float x[kChains];
#pragma unroll
  for (unsigned k = 0; k < kChains; ++k) x[k] = first_number(number, k);
  for (unsigned i = 0; i < steps; ++i)
#pragma unroll
    for (unsigned k = 0; k < kChains; ++k) x[k] = next_number(x[k]);
#pragma unroll
  for (unsigned k = 0; k < kChains; ++k) results[number * kChains + k] = x[k];
}

// The kernel of one benchmark, sized to take about kKernelSeconds alone.
class BusyKernel {
 public:
  virtual ~BusyKernel() = default;
  virtual void launch(cudaStream_t stream) = 0;
  virtual double bytes() const = 0;
  virtual double flops() const = 0;
  virtual void verify(Measurement& m) = 0;  // of the last launch
};

class MemoryKernel final : public BusyKernel {
 public:
  MemoryKernel(const BenchmarkRun& run, CudaTiming& timing)
      : data_(largest_device_buffer(run, 2, std::size_t{1} << 30)) {
    CheckedRange{data_.data(), data_.bytes(), true}.fill(run.settings().seed);
    const CudaStream stream;
    launch(stream.get());
    stream.synchronize();
    passes_ =
        operations_for(timing.seconds_per_operation(stream.get(), 1, [&] { launch(stream.get()); }), kKernelSeconds);
  }
  void launch(cudaStream_t stream) override {
    launch_stream_read(data_.data(), data_.bytes(), passes_, sum_.get(), stream);
  }
  double bytes() const override { return static_cast<double>(data_.bytes()) * passes_; }
  double flops() const override { return 0; }
  void verify(Measurement& m) override {
    sum_.reset();
    launch(nullptr);
    if (sum_.value() == plain_sum(data_.data(), data_.bytes()) * passes_) return;
    m.status = MeasurementStatus::failed;
    m.note = "wrong data: the sum of what the kernel read is not that of what is there.";
  }

 private:
  DeviceBuffer data_;
  DeviceCounter sum_;
  unsigned passes_ = 1;
};

class ArithmeticKernel final : public BusyKernel {
 public:
  explicit ArithmeticKernel(CudaTiming& timing)
      : blocks_(multiprocessors() * 8),
        results_(std::size_t{blocks_} * kThreadsInterference * kChains * sizeof(float)) {
    const CudaStream stream;
    launch(stream.get());
    stream.synchronize();
    const double seconds = timing.seconds_per_operation(stream.get(), 1, [&] { launch(stream.get()); });
    steps_ = operations_for(seconds / steps_, kKernelSeconds, 1u << 24);
  }
  void launch(cudaStream_t stream) override {
    iterate<<<blocks_, kThreadsInterference, 0, stream>>>(results_.as<float>(), steps_);
    check(cudaGetLastError(), "launch of the arithmetic kernel");
  }
  double bytes() const override { return 0; }
  double flops() const override { return kFlopsPerNumber * kChains * steps_ * blocks_ * kThreadsInterference; }
  // A few threads of the first and of the last block, computed again by the CPU.
  void verify(Measurement& m) override {
    std::vector<float> results(results_.bytes() / sizeof(float));
    check(cudaMemcpy(results.data(), results_.data(), results_.bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    const unsigned threads = blocks_ * kThreadsInterference;
    std::uint64_t wrong = 0, compared = 0;
    for (const unsigned first : {0u, threads - kCompared})
      for (unsigned thread = first; thread < first + kCompared; ++thread)
        for (unsigned k = 0; k < kChains; ++k, ++compared)
          wrong += results[std::size_t{thread} * kChains + k] != number_after(steps_, first_number(thread, k));
    note_mismatches(wrong, std::to_string(compared) + " results of the kernel", m);
  }

 private:
  static constexpr unsigned kCompared = 32;  // threads
  static float number_after(unsigned steps, float x) {
    for (unsigned i = 0; i < steps; ++i) x = next_number(x);
    return x;
  }

  unsigned blocks_, steps_ = 4096;
  DeviceBuffer results_;
};

struct CopyBeside {
  const DeviceBuffer& device;
  const PinnedBuffer& host;
  std::size_t bytes = 0;

  Contender contender() const {
    return {[*this](cudaStream_t stream) {
              check(cudaMemcpyAsync(device.data(), host.data(), bytes, cudaMemcpyHostToDevice, stream),
                    "cudaMemcpyAsync");
            },
            0};
  }
};

// `m.bytes` and `m.flops` are those of what is measured.
void report_pair(BenchmarkRun& run, Contention& contention, const Contender& timed, const Contender& busy,
                 Measurement alone, Measurement beside, const std::function<void(Measurement&)>& verify) {
  const unsigned operations = operations_for(timed.seconds, 2e-3, 20);
  run.sample(alone, [&] { return contention.seconds_alone(timed, operations); });
  verify(alone);
  run.report(alone);
  if (run.out_of_time()) return;
  run.sample(beside, [&] { return contention.seconds_per_operation(timed, operations, busy); });
  verify(beside);
  run.report(beside);
}

void measure_size(BenchmarkRun& run, Contention& contention, BusyKernel& kernel, const CopyBeside& copy) {
  Contender kernels{[&](cudaStream_t stream) { kernel.launch(stream); }, 0};
  Contender copies = copy.contender();
  contention.time_alone(kernels);
  contention.time_alone(copies);
  const CheckedRange arrived{copy.device.data(), copy.bytes, true};
  arrived.poison();
  const auto verify = [&](Measurement& m) { kernel.verify(m); };
  const auto row = [&](const char* measured, const char* beside) {
    Measurement m = run.row({{"bytes", std::to_string(copy.bytes)}, {"measured", measured}, {"beside", beside}});
    const bool is_kernel = std::string(measured) == "kernel";
    m.bytes = is_kernel ? kernel.bytes() : static_cast<double>(copy.bytes);
    m.flops = is_kernel ? kernel.flops() : 0;
    m.note = "the copy goes from pinned host memory to the device.";
    return m;
  };
  report_pair(run, contention, kernels, copies, row("kernel", "none"), row("kernel", "copy"), verify);
  if (run.out_of_time()) return;
  report_pair(run, contention, copies, kernels, row("copy", "none"), row("copy", "kernel"),
              [&](Measurement& m) { arrived.verify(run.settings().seed, m); });
}

void measure(BenchmarkRun& run, BusyKernel& kernel) {
  const std::size_t largest = largest_device_buffer(run, 2, kLargestInterference);
  const DeviceBuffer device(largest);
  const PinnedBuffer host(largest);
  CheckedRange{host.data(), largest, false}.fill(run.settings().seed);
  Contention contention;
  for (const std::size_t bytes : sizes_between(kSmallestInterference, largest, 16)) {
    if (run.out_of_time()) return;
    measure_size(run, contention, kernel, {device, host, bytes});
  }
}

void interference_copy_hbm_kernel(BenchmarkRun& run) {
  require_device();
  CudaTiming timing;
  MemoryKernel kernel(run, timing);
  measure(run, kernel);
}

void interference_copy_sm_kernel(BenchmarkRun& run) {
  require_device();
  CudaTiming timing;
  ArithmeticKernel kernel(timing);
  measure(run, kernel);
}

const RegisterBenchmark registered_interference_copy_hbm_kernel{
    {"interference_copy_hbm_kernel", "a copy to the device beside a kernel that device memory bounds",
     BenchmarkPlace::cuda, 45, interference_copy_hbm_kernel}};
const RegisterBenchmark registered_interference_copy_sm_kernel{
    {"interference_copy_sm_kernel", "a copy to the device beside a kernel that arithmetic bounds", BenchmarkPlace::cuda,
     45, interference_copy_sm_kernel}};

}  // namespace
}  // namespace memwall
