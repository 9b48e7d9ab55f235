// Copies from one GPU to another.
#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/cuda_timing.h"

namespace memwall {
namespace {

// Memory of device 1; device 0 is current before and after.
class NeighbourBuffer {
 public:
  explicit NeighbourBuffer(std::size_t bytes) {
    check(cudaSetDevice(1), "cudaSetDevice");
    const cudaError_t code = cudaMalloc(&data_, bytes);
    check(cudaSetDevice(0), "cudaSetDevice");
    check(code, "cudaMalloc on the second GPU");
  }
  ~NeighbourBuffer() { cudaFree(data_); }
  NeighbourBuffer(const NeighbourBuffer&) = delete;
  NeighbourBuffer& operator=(const NeighbourBuffer&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

// Lets the two devices see each other's memory, if they can; false where copies go through the host.
bool enable_access() {
  int possible = 0;
  check(cudaDeviceCanAccessPeer(&possible, 0, 1), "cudaDeviceCanAccessPeer");
  if (possible == 0) return false;
  const cudaError_t code = cudaDeviceEnablePeerAccess(1, 0);
  if (code == cudaErrorPeerAccessAlreadyEnabled)
    (void)cudaGetLastError();
  else
    check(code, "cudaDeviceEnablePeerAccess");
  return true;
}

void measure_size(BenchmarkRun& run, CudaTiming& timing, const CudaStream& stream, const DeviceBuffer& mine,
                  const NeighbourBuffer& theirs, std::size_t bytes, bool direct) {
  Measurement m = run.row({{"bytes", std::to_string(bytes)}, {"ranks", "2"}});
  m.bytes = static_cast<double>(bytes);
  if (!direct) m.note = "the two GPUs cannot see each other's memory: the copies go through the host.";
  unsigned operations = 1;
  const auto copies = [&] {
    for (unsigned i = 0; i < operations; ++i)
      check(cudaMemcpyPeerAsync(theirs.data(), 1, mine.data(), 0, bytes, stream.get()), "cudaMemcpyPeerAsync");
  };
  const auto finished = [&] {
    copies();
    stream.synchronize();
  };
  finished();
  operations = operations_for(host_seconds(finished));
  run.sample(m, [&] {
    // Through the host, the call may wait for the stream.
    if (!direct) return host_seconds(finished) / operations;
    return timing.seconds_per_operation(stream.get(), operations, copies);
  });
  // Back again, over what was there.
  const CheckedRange here{mine.data(), bytes, true};
  here.poison();
  check(cudaMemcpyPeer(mine.data(), 0, theirs.data(), 1, bytes), "cudaMemcpyPeer");
  here.verify(run.settings().seed, m);
  here.fill(run.settings().seed);
  run.report(m);
}

void copy_hbm_peer(BenchmarkRun& run) {
  require_device();
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  if (devices < 2) throw NotApplicable("needs two GPUs, found " + std::to_string(devices) + ".");
  const bool direct = enable_access();
  const std::size_t largest = largest_device_buffer(run, 2, std::size_t{1} << 30);
  const DeviceBuffer mine(largest);
  const NeighbourBuffer theirs(largest);
  CheckedRange{mine.data(), largest, true}.fill(run.settings().seed);
  const CudaStream stream;
  CudaTiming timing;
  for (const std::size_t bytes : copy_sizes(largest)) {
    if (run.out_of_time()) return;
    measure_size(run, timing, stream, mine, theirs, bytes, direct);
  }
}

const RegisterBenchmark registered_copy_hbm_peer{
    {"copy_hbm_peer", "copies from one GPU's memory to another's, by size", BenchmarkPlace::cuda, 15, copy_hbm_peer}};

}  // namespace
}  // namespace memwall
