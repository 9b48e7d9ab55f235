// Copies between host memory and GPUs by several processes at the same time: each to and from a GPU of its own where
// there are as many, else they share the GPUs in turn.
#include <memory>

#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/process_rows.h"

namespace memwall {
namespace {

int gpu_count() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  return count;
}

class CopyOfGpu final : public ProcessWork {
 public:
  struct Arguments {
    std::size_t bytes = 0;
    bool to_device = true;
    int gpus = 1;
    std::uint64_t seed = 0;
  };
  // Here the process touches CUDA first.
  CopyOfGpu(const Arguments& a, unsigned index) : arguments_(a), tag_(a.seed + index) {
    check(cudaSetDevice(static_cast<int>(index) % a.gpus), "cudaSetDevice");
    stream_ = std::make_unique<CudaStream>();
    device_ = std::make_unique<DeviceBuffer>(a.bytes);
    host_ = std::make_unique<PinnedBuffer>(a.bytes);
    on(!a.to_device).fill(tag_);
    on(a.to_device).poison();
  }
  void work(unsigned, unsigned repetitions) override {
    void* const to = arguments_.to_device ? device_->data() : host_->data();
    const void* const from = arguments_.to_device ? host_->data() : device_->data();
    const cudaMemcpyKind kind = arguments_.to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    for (unsigned i = 0; i < repetitions; ++i)
      check(cudaMemcpyAsync(to, from, arguments_.bytes, kind, stream_->get()), "cudaMemcpyAsync");
    stream_->synchronize();
  }
  std::string fault() override {
    Measurement m;
    on(arguments_.to_device).verify(tag_, m);
    return m.note;
  }

 private:
  CheckedRange on(bool device) const { return {device ? device_->data() : host_->data(), arguments_.bytes, device}; }

  Arguments arguments_;
  std::uint64_t tag_;
  std::unique_ptr<CudaStream> stream_;
  std::unique_ptr<DeviceBuffer> device_;
  std::unique_ptr<PinnedBuffer> host_;
};

void measure_gpus(BenchmarkRun& run, bool to_device) {
  require_device();
  // One that is made now would fork what uses the GPU already.
  if (!run.settings().fork_server)
    throw NotApplicable("needs a fork server that was made before CUDA was used; memwall-bench makes one");
  const int gpus = gpu_count();
  constexpr std::size_t kMost = std::size_t{256} << 20;
  const std::size_t most = largest_device_buffer(run, kProcessCounts.back(), kMost);
  const std::size_t bytes = bytes_of_process(run, 1, most);
  std::vector<ProcessCase> cases;
  for (const unsigned processes : kProcessCounts) {
    const std::string used = std::to_string(std::min(static_cast<unsigned>(gpus), processes));
    cases.push_back({processes, equal_work(processes), {{"gpus", used}}});
  }
  measure_processes<CopyOfGpu>(run, cases, {.bytes = static_cast<double>(bytes)},
                               {bytes, to_device, gpus, run.settings().seed});
}

void copy_host_hbm_processes(BenchmarkRun& run) { measure_gpus(run, true); }
void copy_hbm_host_processes(BenchmarkRun& run) { measure_gpus(run, false); }

const RegisterBenchmark registered_copy_host_hbm_processes{
    {"copy_host_hbm_processes",
     "copies of page-locked host memory by 1, 2, 4 and 8 processes at once, each to its own GPU where there are "
     "several",
     BenchmarkPlace::cuda, 54, copy_host_hbm_processes}};
const RegisterBenchmark registered_copy_hbm_host_processes{
    {"copy_hbm_host_processes",
     "copies to page-locked host memory by 1, 2, 4 and 8 processes at once, each of its own GPU where there are "
     "several",
     BenchmarkPlace::cuda, 54, copy_hbm_host_processes}};

}  // namespace
}  // namespace memwall
