// A back end executes what a schedule says, for real, and notes when it happened.
//
// Two exist: `cuda` (a GPU) and `host` (this computer stands in for one: the device is a bounded arena
// in DRAM, streams are threads, kernels are loops, copies are paced to a stated rate). The executor
// calls a back end from one thread per host thread of the schedule. Calls that submit work return at
// once; work of a stream runs in order, streams run beside each other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/trace/op.h"
#include "sim/memory/pytorch_allocator.h"
#include "sim/trace/trace.h"
#include "sim/units.h"
#include "validate/measurement/measurement.h"

namespace memwall {

// Memory that a storage occupies at present. `data` is valid on the side that `place_class` says; a
// storage in a file has `offset` instead.
enum class PlaceClass : std::uint8_t { device, pinned, pageable, file };
struct Buffer {
  PlaceClass place_class = PlaceClass::device;
  void* data = nullptr;
  std::uint64_t offset = 0;  // file: where it begins
  Bytes bytes = 0;
};

// A storage as an op uses it. In a checked pass (see prepare) the content of every storage is
// pattern(tag) (replay/pattern.h): before the op, `expected` is looked for where it reads, and after it
// `made` is written where it writes. 0 = neither. Both are given in timed passes too, where they only say
// which storages the op reads and which it writes.
struct Operand {
  Buffer buffer;
  std::uint64_t expected = 0, made = 0;
};

// What a kernel has to do; its time is what is measured, never given.
struct KernelWork {
  OperatorClass operator_class = OperatorClass::other;
  DataType data_type = DataType::unknown;
  double flops = 0;
  Bytes bytes = 0;  // device memory traffic
  bool operator==(const KernelWork&) const = default;
};

// What stands in for a collective on one GPU. Other GPUs decide how long it takes, which one alone cannot find out: the
// time is given.
struct CollectiveWork {
  Duration duration{};
  double share = 0;  // of the multiprocessors that it occupies meanwhile, 0 to 1
  bool operator==(const CollectiveWork&) const = default;
};
// How many of `all` multiprocessors that is: at least one, which executes it.
inline unsigned multiprocessors_of(const CollectiveWork& work, int all) {
  return static_cast<unsigned>(std::max(1.0, std::round(work.share * all)));
}

// When an op happened, from the moment `start_clock` was called. Device times are kNever where the op
// has no device part.
struct OpTimes {
  Time host_start{}, host_end{};
  Time start = kNever, end = kNever;
};

// What was looked at in checked passes.
struct IntegrityCount {
  std::uint64_t checks = 0, bytes = 0, mismatches = 0;
  std::string first_mismatch;  // a sentence that names the op; "" if none
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual Environment environment() const = 0;
  virtual Bytes device_capacity() const = 0;

  // Streams and events for a pass of `schedule`, which must outlive it. `checked`: contents are written
  // and compared, times do not matter; else contents are whatever they are and times are taken.
  virtual void prepare(const Trace& schedule, bool checked) = 0;
  // Time 0 of the pass. REQUIRES: nothing runs.
  virtual void start_clock() = 0;
  virtual Time now() const = 0;

  // Device memory, in segments (cudaMalloc); blocks are the executor's allocator's business.
  virtual SegmentSource& device_memory() = 0;
  // Host memory, page-locked or not, and room in the file. nullopt-like: throws std::bad_alloc.
  virtual Buffer allocate_host(Bytes bytes, bool pinned) = 0;
  virtual void free_host(const Buffer& buffer) = 0;
  virtual Buffer allocate_file(Bytes bytes) = 0;
  virtual void free_file(const Buffer& buffer) = 0;
  // Writes pattern(tag) into the whole of `buffer`, whatever its place, and returns when it is there: what
  // storages hold before the first op of a checked pass. REQUIRES: tag is not 0; nothing runs.
  virtual void fill(const Buffer& buffer, std::uint64_t tag) = 0;

  // Submit to a stream. `id` is the op's number in the schedule, under which its times are noted.
  virtual void kernel(OpId id, std::uint16_t stream, const KernelWork& work, std::span<const Operand> operands) = 0;
  // A kernel that lasts as long as it is told to, in a timed pass.
  virtual void collective(OpId id, std::uint16_t stream, const CollectiveWork& work,
                          std::span<const Operand> operands) = 0;
  virtual void copy(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) = 0;
  virtual void storage_io(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) = 0;
  virtual void memset(OpId id, std::uint16_t stream, const Operand& to, Bytes bytes) = 0;
  virtual void record(std::uint32_t event, std::uint16_t stream) = 0;
  virtual void wait(std::uint32_t event, std::uint16_t stream) = 0;  // never recorded: no-op

  // Block the calling thread.
  virtual void synchronize_stream(std::uint16_t stream) = 0;
  virtual void synchronize_event(std::uint32_t event) = 0;
  virtual void synchronize_device() = 0;
  // CPU work over host memory on the calling thread (an optimizer step: reads and writes the operands).
  virtual void host_work(OpId id, Bytes dram_bytes, std::span<const Operand> operands) = 0;

  // Device start and end of every op of the pass, by op id. REQUIRES: synchronize_device returned.
  virtual void device_times(std::vector<OpTimes>& times) = 0;
  virtual const IntegrityCount& integrity() const = 0;

  // Stand-alone time of one kernel, or of CPU work, on an otherwise idle machine: the median of several
  // after a warm-up, over buffers of its own.
  virtual Duration kernel_alone(const KernelWork& work) = 0;
  virtual Duration host_work_alone(Bytes dram_bytes) = 0;
  virtual Duration collective_alone(const CollectiveWork& work) = 0;
};

}  // namespace memwall
