// Memory with known contents: filled with pseudo-random words before a benchmark, poisoned where it is going to
// be written, compared afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "validate/measurement/measurement.h"
#include "validate/replay/cuda/cuda_handles.h"

namespace memwall {

// Ordinary host memory, aligned to 4 KiB, touched by whoever fills it first. Throws std::bad_alloc.
class PageableBuffer {
 public:
  explicit PageableBuffer(std::size_t bytes);
  void* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Release {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Release> data_;
  std::size_t bytes_;
};

// A range that a benchmark reads or writes; somebody else's memory. Its contents are pattern_word(tag, index)
// of replay/pattern.h. The methods return when their work is done.
struct CheckedRange {
  void* data = nullptr;
  std::size_t bytes = 0;
  bool on_device = false;  // filled and compared by the device, else by the CPU

  void fill(std::uint64_t tag) const;
  void poison() const;                                // 0xa5 everywhere
  std::uint64_t mismatches(std::uint64_t tag) const;  // words (and trailing bytes) that are not as filled
  // Makes `m` failed, with a note, if there is a mismatch.
  void verify(std::uint64_t tag, Measurement& m) const;
};

// Floating-point numbers, uniform in [-1, 1), in device memory: where random bits could be no number at all.
void fill_uniform(float* data, std::size_t count, std::uint64_t tag);

// Makes `m` failed, with "N of WHAT are wrong." as note, unless `mismatches` is 0.
void note_mismatches(std::uint64_t mismatches, const std::string& what, Measurement& m);

// A number in device memory that kernels add to, for comparisons on the device.
class DeviceCounter {
 public:
  DeviceCounter();
  unsigned long long* get() const { return count_.as<unsigned long long>(); }
  std::uint64_t value() const;  // waits for the device
  void reset() const;

 private:
  DeviceBuffer count_{sizeof(unsigned long long)};
};

}  // namespace memwall
