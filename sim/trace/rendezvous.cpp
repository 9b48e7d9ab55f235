#include "sim/trace/rendezvous.h"

#include <algorithm>

namespace memwall {

RendezvousTable::RendezvousTable(const Trace& trace) {
  if (trace.rank_table.empty()) return;  // nobody else is there
  std::unordered_map<std::uint32_t, std::uint32_t> ops;
  for (const Op& op : trace.ops)
    if (has_rendezvous(op)) ++ops[op.target];
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (!has_rendezvous(op) || ops[op.target] < 2) continue;
    const auto [entry, added] = number_.try_emplace(op.target, members_.size());
    if (added) members_.emplace_back();
    members_[entry->second].push_back(id);
  }
}

std::size_t RendezvousTable::of(const Op& op) const {
  if (!has_rendezvous(op)) return kNone;
  const auto found = number_.find(op.target);
  return found == number_.end() ? kNone : found->second;
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
