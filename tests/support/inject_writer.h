// Writes .mwi files, as libmemwall_inject does and as it never would, by the table in traces/capture/inject/FORMAT.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "models/workload/import/timed/timed_capture.h"

namespace memwall {

struct WrittenKernel {
  std::string_view name;
  std::uint64_t start = 0, end = 0;
  std::uint32_t correlation = 0, stream = 7, device = 0, context = 1, graph = 0;
  std::uint32_t blocks = 1, threads = 128, registers = 0, shared_memory = 0;
};

struct WrittenCopy {
  std::uint64_t start = 0, end = 0, bytes = 0;
  std::uint8_t kind = 1, source = 1, destination = 3;  // CUPTI's: HtoD, pageable to device
  std::uint32_t correlation = 0, stream = 7, device = 0, context = 1;
};

struct WrittenCall {
  std::string_view name;
  std::uint64_t start = 0, end = 0;
  std::uint32_t correlation = 0, thread = 100, domain = 2, callback = 0;
};

class InjectWriter {
 public:
  InjectWriter();  // with a header

  // The number of a string; its record is written when it is first asked for.
  std::uint32_t name(std::string_view text);
  // A record of 64-bit fields, then 32-bit fields, as all but a few kinds have them; padded to a multiple of 8.
  void record(std::uint16_t kind, std::initializer_list<std::uint64_t> wide,
              std::initializer_list<std::uint64_t> narrow, std::string_view rest = "");

  void process(std::uint32_t id, std::string_view command);
  void device(std::uint32_t id, std::string_view name, std::uint64_t memory, std::uint32_t multiprocessors);
  void context(std::uint32_t id, std::uint32_t device);
  void kernel(const WrittenKernel& kernel);
  void copy(const WrittenCopy& copy);
  void memset(const WrittenCopy& memset);
  void call(const WrittenCall& call);
  void range(std::string_view name, std::uint64_t start, std::uint64_t end, std::uint32_t thread = 100,
             std::uint32_t end_thread = 0);  // 0: the same
  void synchronization(std::uint32_t type, std::uint64_t start, std::uint64_t end, std::uint32_t correlation,
                       std::uint32_t stream, std::uint64_t event_sync = 0, std::uint32_t event = 0,
                       std::uint32_t context = 1);
  void event(std::uint64_t event_sync, std::uint32_t correlation, std::uint32_t stream, std::uint32_t event,
             std::uint32_t context = 1);
  void memory(std::uint32_t operation, std::uint64_t time, std::uint64_t address, std::uint64_t size,
              std::uint32_t correlation, std::uint32_t kind = 3, std::uint64_t pool = 0);
  void end(std::uint64_t dropped = 0, std::uint64_t refused_buffers = 0, std::uint64_t over_limit = 0);

  const std::string& bytes() const { return bytes_; }
  void save(const std::filesystem::path& path) const;

 private:
  void put(std::uint64_t value, int size);

  std::string bytes_;
  std::map<std::string, std::uint32_t, std::less<>> names_;
  std::uint32_t markers_ = 0;
};

// The events of a Kineto capture as libmemwall_inject would have recorded them, allocations left out: Kineto's are
// those of PyTorch's allocator, CUPTI's those of cudaMalloc.
InjectWriter as_injected(const TimedCapture& capture);

}  // namespace memwall
