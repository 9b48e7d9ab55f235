#include "sim/trace/rendezvous.h"

#include <algorithm>
#include <unordered_map>

namespace memwall {

RendezvousTable::RendezvousTable(const Trace& trace) {
  if (trace.rank_table.empty()) return;  // nobody else is there
  std::vector<std::pair<std::uint32_t, OpId>> ops;  // by rendezvous, ascending in each
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (has_rendezvous(trace.ops[id])) ops.emplace_back(trace.ops[id].target, id);
  std::sort(ops.begin(), ops.end());
  std::vector<std::pair<OpId, std::size_t>> first;  // op, and its place in `ops`
  for (std::size_t begin = 0, end = 0; begin < ops.size(); begin = end) {
    while (end < ops.size() && ops[end].first == ops[begin].first) ++end;
    if (end - begin > 1) first.emplace_back(ops[begin].second, begin);
  }
  std::sort(first.begin(), first.end());
  for (const auto& [op, begin] : first) {
    numbers_.emplace_back(ops[begin].first, static_cast<std::uint32_t>(numbers_.size()));
    for (std::size_t i = begin; i < ops.size() && ops[i].first == ops[begin].first; ++i)
      members_.push_back(ops[i].second);
    begins_.push_back(members_.size());
  }
  std::sort(numbers_.begin(), numbers_.end());
}

std::size_t RendezvousTable::of(const Op& op) const {
  if (!has_rendezvous(op)) return kNone;
  const auto found = std::ranges::lower_bound(numbers_, op.target, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
  return found == numbers_.end() || found->first != op.target ? kNone : found->second;
}

std::uint64_t first_free_rendezvous(const Trace& trace) {
  std::uint64_t first_free = 1;
  for (const Op& op : trace.ops)
    if (has_rendezvous(op)) first_free = std::max<std::uint64_t>(first_free, op.target + std::uint64_t{1});
  return first_free;
}

bool separate_rendezvous(Trace& program, std::uint64_t first_free) {
  std::unordered_map<std::uint32_t, std::uint64_t> times;
  for (Op& op : program.ops) {
    if (!has_rendezvous(op) || op.target >= first_free) continue;
    const std::uint64_t rendezvous = op.target + first_free * times[op.target]++;
    if (rendezvous >= kNoRendezvous) return false;
    op.target = static_cast<std::uint32_t>(rendezvous);
  }
  return true;
}

}  // namespace memwall
