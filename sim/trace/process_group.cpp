#include "sim/trace/process_group.h"

#include <algorithm>

#include "sim/trace/trace.h"

namespace memwall {

ProcessGroup process_group_of(const Trace& trace, const Op& collective) {
  if (collective.group < trace.groups.size()) {
    ProcessGroup group = trace.groups[collective.group];
    if (group.ranks == 0) group.ranks = static_cast<std::uint32_t>(group.members.size());
    if (group.ranks > 0) return group;
  }
  const auto present = static_cast<std::uint32_t>(std::max<std::size_t>(1, trace.rank_table.size()));
  const bool one_program = trace.rank_table.empty();
  return {
      "", one_program ? std::max(trace.ranks, trace.job_ranks) : std::max({trace.ranks, trace.job_ranks, present}), {}};
}

}  // namespace memwall
