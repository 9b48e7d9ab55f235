// What the nodes of an ExecutionTrace say about collectives and process groups.
//
// PyTorch writes a node record_param_comms around each collective (torch/csrc/distributed/c10d/ParamCommsUtils.hpp):
// the tensors, a number that counts collectives, the group, the rank, the name, the elements per peer sent and
// received, and in newer files how the group's members are spaced and how many there are. The same node with the name
// "wait" says which number was waited for. Groups are listed by "## process_group:init ##", in JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/import/execution_trace/execution_order.h"
#include "sim/trace/op.h"
#include "sim/trace/trace.h"

namespace memwall {

inline constexpr std::uint32_t kMostRanks = 1u << 20;  // of a group; a larger number counts as not said

struct CommunicationNode {
  std::string name;                         // "allreduce", "wait", "" if unknown
  std::int64_t number = -1;                 // of the collective, or of the one that is waited for
  std::string group;                        // "" if unknown
  std::uint32_t ranks = 0;                  // in the group; 0 = not said
  std::int64_t first_rank = -1, step = -1;  // of evenly spaced members
  std::int64_t rank = -1;                   // that ran this
  CollectiveKind kind = CollectiveKind::none;
  Bytes message = 0;  // all that the rank puts in
};

// Of record_param_comms itself; nothing of another node.
std::optional<CommunicationNode> communication_record(const ExecutionTrace& execution, std::uint32_t node);

// Of a node that stands for a collective (NodeDeviceWork::collective): with what the nodes around say.
CommunicationNode communication_of(const ExecutionTrace& execution, const ExecutionOrder& order, std::uint32_t node);

// By the names of NCCL's backend ("allreduce", "all_to_allv", "_reduce_scatter_base"), of operators and ranges
// ("c10d::allgather_", "nccl:all_gather") and of Chakra ("ALL_REDUCE"); `none` of others. What goes to or from a root
// alone counts as sends and receives.
CollectiveKind collective_by_name(std::string_view name);

// The groups that the file lists, in its order.
std::vector<ProcessGroup> listed_groups(const ExecutionTrace& execution);

}  // namespace memwall
