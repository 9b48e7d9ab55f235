// Ranks that communicate with each other (NCCL's communicator, PyTorch's process group).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memwall {

struct Op;
struct Trace;

struct ProcessGroup {
  std::string name;                    // as the capture called it; "" = unknown
  std::uint32_t ranks = 0;             // how many; 0 = unknown
  std::vector<std::uint32_t> members;  // their numbers in the job, ascending; empty = unknown
};

// That of a collective: Op::group, where the trace knows it; else all ranks of the job, folded ones and those of a
// capture of which the trace holds a part.
ProcessGroup process_group_of(const Trace& trace, const Op& collective);

}  // namespace memwall
