// What CUDA hands out, owned: streams, events and memory that are given back when they go out of scope, and
// return codes that become exceptions. Shared by the CUDA back end and the CUDA benchmarks.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace memwall {

// The message reads "cudaMalloc failed: out of memory (cudaErrorMemoryAllocation)."
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t code, const std::string& call);
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

// Throws CudaError unless `code` is cudaSuccess. `call` names what was called. The runtime's own note of the
// error is cleared, so that the next kernel launch is not blamed for it.
void check(cudaError_t code, const char* call);

// A function of the CUDA driver by its name, as of driver API `version` (12000 = 12.0), without linking the
// driver library. Throws std::runtime_error where the driver lacks it.
void* driver_entry_point(const char* name, unsigned version);

// A stream that does not wait for the legacy default stream.
class CudaStream {
 public:
  CudaStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"); }
  ~CudaStream() { cudaStreamDestroy(stream_); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t get() const { return stream_; }
  void synchronize() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  // What is submitted from now on begins after what `event` recorded last.
  void wait(cudaEvent_t event) const { check(cudaStreamWaitEvent(stream_, event, 0), "cudaStreamWaitEvent"); }

 private:
  cudaStream_t stream_ = nullptr;
};

// An event; `timed` ones cost a little more.
class CudaEvent {
 public:
  explicit CudaEvent(bool timed = true) {
    check(cudaEventCreateWithFlags(&event_, timed ? cudaEventDefault : cudaEventDisableTiming),
          "cudaEventCreateWithFlags");
  }
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  cudaEvent_t get() const { return event_; }
  void record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  void synchronize() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  // Seconds from `earlier` to this one; resolution about 0.5 us. REQUIRES: both timed, recorded and complete.
  double seconds_since(const CudaEvent& earlier) const {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// What the buffers below have in common: they own `bytes` bytes from CUDA, none if that is 0.
class CudaMemory {
 public:
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  void* data() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const { return bytes_; }

 protected:
  explicit CudaMemory(std::size_t bytes) : bytes_(bytes) {}
  ~CudaMemory() = default;

  void* data_ = nullptr;

 private:
  std::size_t bytes_;
};

// Memory of the device: plain cudaMalloc.
class DeviceBuffer : public CudaMemory {
 public:
  explicit DeviceBuffer(std::size_t bytes) : CudaMemory(bytes) {
    if (bytes > 0) check(cudaMalloc(&data_, bytes), "cudaMalloc");
  }
  ~DeviceBuffer() { cudaFree(data_); }
};

// Page-locked host memory that the device sees under the same address.
class PinnedBuffer : public CudaMemory {
 public:
  explicit PinnedBuffer(std::size_t bytes) : CudaMemory(bytes) {
    if (bytes > 0) check(cudaHostAlloc(&data_, bytes, cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc");
  }
  ~PinnedBuffer() { cudaFreeHost(data_); }
};

// Unified memory, attached to no stream in particular.
class ManagedBuffer : public CudaMemory {
 public:
  explicit ManagedBuffer(std::size_t bytes) : CudaMemory(bytes) {
    if (bytes > 0) check(cudaMallocManaged(&data_, bytes, cudaMemAttachGlobal), "cudaMallocManaged");
  }
  ~ManagedBuffer() { cudaFree(data_); }
};

}  // namespace memwall
