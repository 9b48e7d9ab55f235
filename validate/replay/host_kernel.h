// The kernels of the host back end: loops that do the FLOPs and move the bytes that an op says, and take as
// long as that takes.
//
// Traffic is divided into reads and writes by operator class alone, so that a kernel in a schedule does what it
// does when it is measured alone. It goes over the op's operands once, in order, then on over scratch memory
// that is larger than most caches.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "validate/replay/backend.h"
#include "validate/replay/host_computer.h"
#include "validate/replay/mapped_memory.h"

namespace memwall {

// Memory for traffic that no operand takes. One reader's area is shared by all, each writer has its own.
class ScratchMemory {
 public:
  static constexpr Bytes kBytes = MiB(64);  // of the reader's area, and of each writer's

  // What one op uses while it runs; where it goes on next time.
  struct Lane {
    explicit Lane(Bytes bytes) : writable(bytes) {}
    MappedMemory writable;
    Bytes read_at = 0, write_at = 0;
  };
  ScratchMemory() : readable_(kBytes) {}

  // Makes sure that `lanes` can be lent without asking the system for memory.
  void reserve(std::size_t lanes);
  std::unique_ptr<Lane> lend();
  void take_back(std::unique_ptr<Lane> lane);
  const std::byte* readable() const { return readable_.data(); }

 private:
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

// Does it on the calling thread, in pieces, each while it holds a pass of `gate`. Operands that the op writes
// (`made` is not 0) are overwritten, those that it reads (`expected` is not 0) are read; files are left alone.
void run_loop(const HostLoop& loop, std::span<const Operand> operands, ScratchMemory& scratch, CoreGate& gate);

}  // namespace memwall
