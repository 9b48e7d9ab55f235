// Between storage and device memory through page-locked host memory: a chunk is on the link while the next one is
// read, or the last one written.
#include <algorithm>
#include <array>

#include "validate/bench/cuda/cuda_buffers.h"
#include "validate/bench/cuda/cuda_device.h"
#include "validate/bench/cuda/cuda_timing.h"
#include "validate/measurement/direct_file.h"

namespace memwall {
namespace {

constexpr std::size_t kChunk = std::size_t{32} << 20;  // twice what the file has in flight
constexpr std::size_t kSmallestStaged = std::size_t{1} << 20;
constexpr std::size_t kLargestStaged = std::size_t{1} << 30;

// Device memory, a file, and two chunks of host memory between them.
class StagedPath {
 public:
  StagedPath(const std::filesystem::path& file, std::size_t bytes)
      : device_(bytes), chunk_(std::min(bytes, kChunk)), first_(chunk_), second_(chunk_), file_(file, bytes, {}) {}

  // Both return when all bytes are there.
  void storage_to_hbm(std::size_t bytes) {
    for (std::size_t at = 0, n = 0; at < bytes; at += chunk_, ++n) {
      const PinnedBuffer& host = n % 2 == 0 ? first_ : second_;
      const CudaEvent& copied = copied_[n % 2];
      const std::size_t part = std::min(chunk_, bytes - at);
      if (n >= 2) copied.synchronize();  // its last contents are on the device
      file_.read(host.data(), part, at);
      check(cudaMemcpyAsync(device_.as<std::byte>() + at, host.data(), part, cudaMemcpyHostToDevice, stream_.get()),
            "cudaMemcpyAsync");
      copied.record(stream_.get());
    }
    stream_.synchronize();
  }

  void hbm_to_storage(std::size_t bytes) {
    queue_to_host(0, 0, bytes);
    for (std::size_t at = 0, n = 0; at < bytes; at += chunk_, ++n) {
      // Its last contents have been written: write() returned.
      if (at + chunk_ < bytes) queue_to_host(n + 1, at + chunk_, bytes);
      copied_[n % 2].synchronize();
      file_.write((n % 2 == 0 ? first_ : second_).data(), std::min(chunk_, bytes - at), at);
    }
  }

  CheckedRange device(std::size_t bytes) const { return {device_.data(), bytes, true}; }
  CheckedRange host(std::size_t bytes) const { return {first_.data(), bytes, false}; }
  std::size_t chunk() const { return chunk_; }
  const std::string& method() const { return file_.method(); }
  DirectFile& file() { return file_; }

 private:
  void queue_to_host(std::size_t number, std::size_t at, std::size_t bytes) {
    const PinnedBuffer& host = number % 2 == 0 ? first_ : second_;
    check(cudaMemcpyAsync(host.data(), device_.as<std::byte>() + at, std::min(chunk_, bytes - at),
                          cudaMemcpyDeviceToHost, stream_.get()),
          "cudaMemcpyAsync");
    copied_[number % 2].record(stream_.get());
  }

  DeviceBuffer device_;
  std::size_t chunk_;
  PinnedBuffer first_, second_;
  DirectFile file_;
  CudaStream stream_;
  std::array<CudaEvent, 2> copied_{CudaEvent(false), CudaEvent(false)};
};

// Overwrites the file, so that nothing of an earlier case can pass for what was written now.
void poison_file(StagedPath& path, std::size_t bytes) {
  path.host(path.chunk()).poison();
  for (std::size_t at = 0; at < bytes; at += path.chunk())
    path.file().write(path.host(0).data, std::min(path.chunk(), bytes - at), at);
}

void measure_size(BenchmarkRun& run, StagedPath& path, bool to_device, std::size_t bytes) {
  const std::uint64_t tag = run.settings().seed;
  Measurement m = run.row({{"bytes", std::to_string(bytes)}});
  m.bytes = static_cast<double>(bytes);
  m.note = path.method() + ", two chunks of " + std::to_string(path.chunk()) + " bytes";
  path.device(bytes).fill(tag);
  if (to_device) {
    path.hbm_to_storage(bytes);
    path.device(bytes).poison();
  } else {
    poison_file(path, bytes);
  }
  run.sample(
      m, [&] { return host_seconds([&] { to_device ? path.storage_to_hbm(bytes) : path.hbm_to_storage(bytes); }); });
  if (!to_device) {  // what is in the file, back on the device
    path.device(bytes).poison();
    path.storage_to_hbm(bytes);
  }
  path.device(bytes).verify(tag, m);
  run.report(m);
}

void measure(BenchmarkRun& run, bool to_device, const char* file_name) {
  require_device();
  if (run.settings().scratch.empty()) throw NotApplicable("needs a folder for files; none was given.");
  const std::size_t largest = largest_device_buffer(run, 1, std::min(kLargestStaged, run.settings().largest_file));
  if (largest < kSmallestStaged)
    throw NotApplicable("needs a file of " + std::to_string(kSmallestStaged) + " bytes, may make one of " +
                        std::to_string(largest) + ".");
  StagedPath path(run.settings().scratch / file_name, largest);
  for (const std::size_t bytes : sizes_between(kSmallestStaged, largest, 4)) {
    if (run.out_of_time()) return;
    measure_size(run, path, to_device, bytes);
  }
}

void storage_hbm_staged(BenchmarkRun& run) { measure(run, true, "storage_hbm_staged"); }
void hbm_storage_staged(BenchmarkRun& run) { measure(run, false, "hbm_storage_staged"); }

const RegisterBenchmark registered_storage_hbm_staged{{"storage_hbm_staged",
                                                       "a file to device memory through page-locked memory",
                                                       BenchmarkPlace::cuda, 55, storage_hbm_staged}};
const RegisterBenchmark registered_hbm_storage_staged{{"hbm_storage_staged",
                                                       "device memory to a file through page-locked memory",
                                                       BenchmarkPlace::cuda, 55, hbm_storage_staged}};

}  // namespace
}  // namespace memwall
