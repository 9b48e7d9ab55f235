// The host back end as the benchmarks of place `host` use it: some streams, memory that is given back, and the
// times of single ops. Its settings are the defaults, as in a replay, but for the size of its memory.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "sim/trace/trace.h"
#include "validate/bench/benchmark.h"
#include "validate/replay/backend.h"
#include "validate/replay/host_backend.h"

namespace memwall {

// Streams 0 to 2 by role; those from kMoreStreams on are copy streams.
inline constexpr std::uint16_t kComputeStream = 0, kInStream = 1, kOutStream = 2, kStorageStream = 3, kMoreStreams = 4;
inline constexpr std::uint16_t kCopyStreams = 4;

// Memory of one place, given back at the end of its life. The back end must outlive it.
class HostBuffer {
 public:
  // Throws NotApplicable if there is not so much. REQUIRES: bytes > 0.
  HostBuffer(Backend& backend, PlaceClass place, Bytes bytes);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  const Buffer& get() const { return buffer_; }
  // The first `bytes` of it, as an op uses them that reads (or writes) them.
  Operand read(Bytes bytes) const { return {first(bytes), 1, 0}; }
  Operand written(Bytes bytes) const { return {first(bytes), 0, 1}; }

 private:
  Buffer first(Bytes bytes) const;

  Backend& backend_;
  Buffer buffer_;
};

class HostDevice {
 public:
  // `capacity` of device memory (in whole MiB and some room besides), `file_bytes` of file. Throws UsageError.
  HostDevice(const BenchmarkRun& run, Bytes capacity, Bytes file_bytes = 0);
  explicit HostDevice(const HostBackendSettings& settings);
  // The defaults, with `capacity` as above and no file.
  static HostBackendSettings settings_of(Bytes capacity);

  Backend& backend() { return *backend_; }
  // Device start and end of op `id`, in seconds since the clock started. REQUIRES: it was submitted;
  // id < kOps. Waits for everything.
  struct Seconds {
    double start = 0, end = 0;
    double length() const { return end - start; }
  };
  Seconds times_of(OpId id);
  static constexpr OpId kOps = 64;

 private:
  Trace schedule_;
  std::unique_ptr<Backend> backend_;
};

// 4 KiB, 16 KiB, ... up to `largest`, which is the last one if no other is.
std::vector<Bytes> sizes_up_to(Bytes largest, Bytes smallest = KiB(4));
// The largest buffer that a benchmark of the host back end takes: copies are slow, and memory is shared.
Bytes largest_host_buffer(const BenchmarkRun& run);
// The row is `failed` if the first `bytes` of `buffer` in memory are not pattern(tag).
void verify_pattern(const Buffer& buffer, Bytes bytes, std::uint64_t tag, Measurement& m);
// What a copy must overwrite.
void poison(const Buffer& buffer, Bytes bytes);

}  // namespace memwall
