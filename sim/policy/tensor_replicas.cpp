#include "sim/policy/tensor_replicas.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/error.h"
#include "sim/trace/group_names.h"

namespace memwall {
namespace {

// The ranks of the job that the program stands for; 0 where it is none of a tensor-parallel group.
std::uint32_t tensor_ranks(const Trace& trace) {
  if (trace.rank_table.size() != 1) return 0;
  for (const ProcessGroup& group : trace.groups)
    if (group.name == kTensorParallelGroup && group.ranks > 1) return group.ranks;
  return 0;
}

void spread(ProcessGroup& group, std::uint32_t apart) {
  if (group.members.empty()) {
    group.members.resize(group.ranks);
    std::iota(group.members.begin(), group.members.end(), 0U);
  }
  for (std::uint32_t& member : group.members) member *= apart;
  group.name = std::string(kDataParallelGroup) + ": " + group.name;
}

}  // namespace

Trace with_tensor_replicas(Trace after, const Trace& before, const Pricer& pricer) {
  const std::uint32_t tensor = tensor_ranks(before), replicas = after.ranks;
  if (tensor == 0 || after.rank_table.size() != 1 || replicas <= 1) return after;
  Rank& rank = after.rank_table.front();
  if (rank.number != 0 || rank.stands_for.size() + 1 != tensor)
    throw UsageError("Trace '" + before.name + "' has " + std::to_string(rank.stands_for.size() + 1) + " ranks, " +
                     std::to_string(tensor) +
                     " of which share each layer, so that it has replicas already; expected data_parallel=1 beside a "
                     "policy that makes replicas.");
  for (std::size_t g = before.groups.size(); g < after.groups.size(); ++g)
    if (after.groups[g].ranks > 0) spread(after.groups[g], tensor);
  for (Op& op : after.ops) {
    if (op.kind != OpKind::collective || op.group < before.groups.size() || op.group >= after.groups.size()) continue;
    const ProcessGroup& group = after.groups[op.group];
    op.duration = pricer.collective(op.collective, pricer.message_bytes(op.collective, op.bytes, group.ranks), group);
  }
  const std::uint32_t all = tensor * replicas;
  rank.stands_for.resize(all - 1);
  std::iota(rank.stands_for.begin(), rank.stands_for.end(), 1U);
  after.ranks = rank.ranks = 1;
  after.job_ranks = all;
  for (double* const count :
       {&after.samples_per_step, &after.tokens_per_step, &rank.samples_per_step, &rank.tokens_per_step})
    *count *= replicas;
  return after;
}

}  // namespace memwall
