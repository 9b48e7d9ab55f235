// The kernels of the host back end: loops that do the FLOPs and move the bytes that an op says, and take as
// long as that takes.
//
// The bytes are moved in memory of the loops' own, larger than most caches, divided into reads and writes by operator
// class. Not in the op's operands: beside the memory of this stand-in its cache is large, unlike a GPU's, and the
// same kernel would take half the time where its inputs had just been written. In a checked pass the operands
// are read and written besides (host_content.h).
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "validate/replay/backend.h"
#include "validate/replay/host_computer.h"
#include "validate/replay/mapped_memory.h"

namespace memwall {

// One reader's area is shared by all, each writer has its own.
class ScratchMemory {
 public:
  // What one op uses while it runs; where it goes on next time, so that it does not meet what is still cached.
  struct Lane {
    explicit Lane(Bytes bytes) : writable(bytes) {}
    MappedMemory writable;
    Bytes read_at = 0, write_at = 0;
  };
  // `bytes` to read; half of it to write per lane. Throws std::bad_alloc.
  explicit ScratchMemory(Bytes bytes) : readable_(bytes) {}
  // For a device of this size: enough to exceed caches, no more than a part of the device.
  static Bytes bytes_for(Bytes device_capacity);

  // Makes sure that `lanes` can be lent without asking the system for memory.
  void reserve(std::size_t lanes);
  std::unique_ptr<Lane> lend();
  void take_back(std::unique_ptr<Lane> lane);
  const MappedMemory& readable() const { return readable_; }

 private:
  std::unique_ptr<Lane> new_lane() const { return std::make_unique<Lane>(readable_.bytes() / 2); }

  MappedMemory readable_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Lane>> idle_;
};

// Part of a kernel's traffic that reads; the rest writes.
double read_share(OperatorClass operator_class);
// Of CPU work: an Adam step reads parameter, gradient and two moments, and writes all but the gradient.
inline constexpr double kHostWorkReadShare = 4.0 / 7.0;

// What is to be done: by a kernel, or by the CPU as an optimizer.
struct HostLoop {
  double flops = 0;
  Bytes read = 0, write = 0;
};
HostLoop loop_of(const KernelWork& work);
HostLoop loop_of_host_work(Bytes dram_bytes);

// Does it on the calling thread, in pieces, each while it holds a pass of `gate`.
void run_loop(const HostLoop& loop, ScratchMemory& scratch, CoreGate& gate);

// Once over memory, as fast as one thread can. REQUIRES: multiples of 8.
void read_memory(const std::byte* data, Bytes bytes);
void write_memory(std::byte* data, Bytes bytes);

}  // namespace memwall
