// A timed capture as one rank of a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/execution_trace/operator_match.h"
#include "models/workload/import/timed/rank_capture.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

// Groups are named by PyTorch's records of communications (2024 and later); else by the ExecutionTrace of the same run,
// if one is given with its match, whose nodes record_param_comms hold the group's name or pointer and the number of the
// collective; else each stream of NCCL is a group. More than 65,535 groups count as that many.
RankCapture rank_of_capture(const ImportedTrace& imported, const TimedCapture& capture,
                            const ExecutionTrace* execution = nullptr, const OperatorMatch* match = nullptr);

// The ranks of a job that "[0, 1, 5]" lists, ascending; empty where that leaves some out ("...") or is no list.
std::vector<std::uint32_t> listed_ranks(const std::string& text);

// What the inputs of a node record_param_comms say (torch/csrc/distributed/c10d/ParamCommsUtils.hpp, by schema):
// sequence number, group, rank, name. False where it is none, or says nothing of these.
struct NodeCommunication {
  std::int64_t sequence = -1, rank = -1;  // rank: within the group
  std::string group;                      // a name, or the pointer in this process as text
  bool group_named = false;               // it is a name
  std::string collective;
};
bool communication_of_node(const ExecutionTrace& execution, const ExecutionNode& node, NodeCommunication& result);

// The rank of the job that the ExecutionTrace's collectives name, by the spacing of their groups; -1 where none does,
// or several.
std::int64_t rank_of(const ExecutionTrace& execution);

}  // namespace memwall
