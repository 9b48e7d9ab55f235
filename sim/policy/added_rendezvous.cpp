#include "sim/policy/added_rendezvous.h"

#include <algorithm>
#include <set>

#include "sim/error.h"
#include "sim/trace/rendezvous.h"

namespace memwall {
namespace {

std::vector<OpId> added_alone(const Trace& trace) {
  std::vector<OpId> ids;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (const Op& op = trace.ops[id]; op.kind == OpKind::collective && op.added && !has_rendezvous(op))
      ids.push_back(id);
  return ids;
}

std::uint64_t first_free_of(const std::vector<RankProgram>& ranks) {
  std::uint64_t first = 1;
  for (const RankProgram& rank : ranks) first = std::max(first, first_free_rendezvous(rank.trace));
  return first;
}

std::vector<std::uint32_t> numbers_of(const std::vector<RankProgram>& ranks) {
  std::vector<std::uint32_t> numbers;
  for (const RankProgram& rank : ranks) {
    numbers.push_back(rank.number);
    numbers.insert(numbers.end(), rank.stands_for.begin(), rank.stands_for.end());
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

[[noreturn]] void refuse(const std::string& policy, const std::string& sentence) {
  throw UsageError("Policy '" + policy + "': " + sentence);
}

void require_same(const Op& a, const Op& b, std::size_t position, const std::string& policy) {
  if (a.collective == b.collective && a.bytes == b.bytes) return;
  refuse(policy, "collective " + std::to_string(position) + " that it adds to one rank is a " +
                     std::string(to_string(a.collective)) + " of " + std::to_string(a.bytes) + " bytes, to another a " +
                     std::string(to_string(b.collective)) + " of " + std::to_string(b.bytes) +
                     "; expected ranks that hold the same parameters.");
}

void name_members(Trace& trace, const std::vector<OpId>& added, const std::vector<std::uint32_t>& members) {
  std::set<std::uint16_t> groups;
  for (const OpId id : added) groups.insert(trace.ops[id].group);
  for (const std::uint16_t g : groups) {
    if (g >= trace.groups.size()) trace.groups.resize(g + std::size_t{1});
    if (trace.groups[g].ranks == 0) trace.groups[g].ranks = static_cast<std::uint32_t>(members.size());
    if (trace.groups[g].ranks == members.size()) trace.groups[g].members = members;
  }
}

}  // namespace

void join_added_collectives(std::vector<RankProgram>& ranks, const std::string& policy) {
  const std::vector<std::uint32_t> members = numbers_of(ranks);
  std::vector<std::vector<OpId>> added;
  for (const RankProgram& rank : ranks) added.push_back(added_alone(rank.trace));
  const std::uint64_t first = first_free_of(ranks);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    Trace& trace = ranks[r].trace;
    if (added[r].size() != added[0].size())
      refuse(policy, "it adds " + std::to_string(added[0].size()) + " collectives to rank " +
                         std::to_string(ranks[0].number) + " and " + std::to_string(added[r].size()) + " to rank " +
                         std::to_string(ranks[r].number) + "; expected ranks that hold the same parameters.");
    if (trace.ranks % members.size() != 0)
      refuse(policy, "it is asked for " + std::to_string(trace.ranks) + " ranks, and trace '" + trace.name +
                         "' holds " + std::to_string(members.size()) + "; expected a multiple of them.");
    for (std::size_t i = 0; i < added[r].size(); ++i) {
      Op& op = trace.ops[added[r][i]];
      require_same(ranks[0].trace.ops[added[0][i]], op, i, policy);
      op.target = static_cast<std::uint32_t>(first + i);
    }
    if (trace.ranks == members.size()) name_members(trace, added[r], members);
    trace.ranks = static_cast<std::uint32_t>(trace.ranks / members.size());
  }
}

}  // namespace memwall
