// What the ranks of one host take of it together: its memory by cause, its cores, and what they page-lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

// Storages of one kind, page-locked or not.
struct HostMemoryCause {
  StorageKind kind = StorageKind::unknown;
  bool pinned = false;
  Bytes bytes = 0;  // as requested
};

// Cores that ranks have in common: those of a host, or of one of its NUMA nodes. A thread keeps a core busy while it is
// in a call or in the framework between calls, not while it waits for the device; work on the CPU's memory keeps as
// many busy as it has threads, for as long as it lasts, waiting for the DRAM included.
struct CoreUse {
  double cores = 0;             // that there are
  std::uint32_t ranks = 0;      // that have them in common
  double most = 0;              // wanted at once, at most
  double mean = 0;              // over the whole run; the sum of the three below
  double mean_optimizer = 0;    // CPU optimizers
  double mean_memory_work = 0;  // other work on the CPU that moves bytes: casts, gradient norms
  double mean_threads = 0;      // host threads: launches, framework, data loading
  Duration beyond{};            // time in which more are wanted than there are
};

struct PageLocking {
  std::uint64_t calls = 0;
  Bytes bytes = 0;
};

// All bytes are of all ranks of the host together.
struct HostUse {
  std::string tier;                  // "host", "host rank 8", "cxl"
  std::vector<std::uint32_t> ranks;  // by number in the job
  std::uint32_t hosts = 1;           // that look like this: those of the ranks that the program stands for
  Bytes usable = 0;                  // of tensors
  // At the instant at which most is in use. The causes, `rounding` and `cached` add up to `peak_reserved`.
  Time time{};
  std::vector<HostMemoryCause> causes;  // largest first
  Bytes rounding = 0;                   // of page-locked memory, to powers of two or to pages
  Bytes cached = 0;                     // that a pool of page-locked memory keeps, at its largest
  Bytes peak_reserved = 0;
  PageLocking before_step, in_first_step;  // by the allocator of page-locked memory; of one rank each
  std::vector<CoreUse> cores;              // of tier "host", where their number is known
};

// Of every tier of class host in which something lives, as RankMachine::tiers. Without `causes` where nobody recorded.
std::vector<HostUse> host_use(const Run& run);

}  // namespace memwall
