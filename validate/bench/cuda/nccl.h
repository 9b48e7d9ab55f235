// NCCL, opened at run time: collectives between the GPUs of this computer, all ranks in this process.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "validate/bench/kernel_cases.h"

namespace memwall {

// What one rank gives to a collective on fp32 numbers. `elements`: of the whole buffer, a multiple of the ranks.
// all_gather: `send` has elements / ranks, `receive` all. reduce_scatter: the other way round. all_reduce: both all.
struct NcclOperands {
  const void* send = nullptr;
  void* receive = nullptr;
  cudaStream_t stream = nullptr;  // of the rank's device
};

// Communicators of ranks 0 to ranks - 1 on the devices of the same numbers.
class NcclRanks {
 public:
  virtual ~NcclRanks() = default;
  virtual int ranks() const = 0;
  // Queues the collective (sums, where it reduces) on every rank. Throws std::runtime_error.
  // REQUIRES: one entry per rank.
  virtual void run(NcclCollective collective, std::size_t elements,
                   const std::vector<NcclOperands>& operands) const = 0;
};

class NcclLibrary : public std::enable_shared_from_this<NcclLibrary> {
 public:
  // Null where there is no such library; `why_not` says so in a sentence.
  static std::shared_ptr<const NcclLibrary> load(std::string& why_not);
  virtual ~NcclLibrary() = default;
  virtual std::string version() const = 0;  // "2.28.9"
  // Keeps the library open. Throws std::runtime_error. REQUIRES: as many devices, at least two.
  virtual std::unique_ptr<NcclRanks> connect(int ranks) const = 0;
};

}  // namespace memwall
