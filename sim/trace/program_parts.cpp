#include "sim/trace/program_parts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "sim/trace/rendezvous.h"

namespace memwall {
namespace {

// The group of rank `to` that corresponds to that of rank `from`. Ranks are numbered along a grid: members of a group
// lie `stride` apart, and so do those of all groups along that axis; else the group has moved with its rank, as a
// pipeline's does.
RankNumbers group_of(const RankNumbers& members, std::uint32_t from, std::uint32_t to) {
  if (members.size() < 2 || has_rank(members, to)) return members;
  const auto count = static_cast<std::uint32_t>(members.size());
  const std::uint32_t stride = members[1] - members[0];
  const auto along_axis = [&](std::uint32_t rank) {
    RankNumbers group(count, rank - rank / stride % count * stride);
    for (std::uint32_t i = 0; i < count; ++i) group[i] += i * stride;
    return group;
  };
  if (along_axis(from) == members) return along_axis(to);
  RankNumbers moved = members;
  for (std::uint32_t& member : moved) member = member - from + to;
  return moved;
}

// A program that is cut into several for parts of its ranks.
class ProgramParts {
 public:
  ProgramParts(Trace program, const Rank& rank, std::vector<RankNumbers> parts, std::uint64_t& free)
      : program_(std::move(program)), rank_(rank), parts_(std::move(parts)), free_(free) {}

  void append_to(std::vector<RankProgram>& programs) && {
    std::vector<RankProgram> own;
    for (const RankNumbers& part : parts_) {
      own.push_back({part.front(), program_, {part.begin() + 1, part.end()}, rank_.chunks});
      Trace& its = own.back().trace;
      for (ProcessGroup& group : its.groups) group.members = group_of(group.members, rank_.number, part.front());
      // Of the whole job, and said once.
      if (own.size() > 1) its.samples_per_step = its.tokens_per_step = 0;
    }
    for (OpId id = 0; id < program_.ops.size(); ++id) join(id, own);
    std::move(own.begin(), own.end(), std::back_inserter(programs));
  }

 private:
  // The parts that a collective joins, by the lowest of them.
  std::vector<std::size_t> joined_parts(const ProcessGroup& group) const {
    std::vector<std::size_t> root(parts_.size());
    std::iota(root.begin(), root.end(), std::size_t{0});
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const RankNumbers members = group_of(group.members, rank_.number, parts_[p].front());
      for (std::size_t q = 0; q < parts_.size(); ++q) {
        const bool meets = group.members.empty() || std::any_of(members.begin(), members.end(), [&](std::uint32_t m) {
                             return has_rank(parts_[q], m);
                           });
        if (!meets || root[p] == root[q]) continue;
        const auto [low, high] = std::minmax(root[p], root[q]);
        std::replace(root.begin(), root.end(), std::size_t{high}, std::size_t{low});
      }
    }
    return root;
  }

  const std::vector<std::size_t>& parts_joined_by(const Op& op) {
    const auto [known, added] = joined_.try_emplace(op.group);
    if (!added) return known->second;
    const ProcessGroup group = process_group_of(program_, op);
    known->second = group.ranks == 1 ? std::vector<std::size_t>() : joined_parts(group);
    return known->second;
  }

  void join(OpId id, std::vector<RankProgram>& own) {
    const Op& op = program_.ops[id];
    if (op.kind != OpKind::collective || op.target != kNoRendezvous) return;
    const std::vector<std::size_t>& root = parts_joined_by(op);
    for (std::size_t p = 0; p < root.size(); ++p) {
      if (std::count(root.begin(), root.end(), p) < 2 || root[p] != p) continue;
      if (free_ >= kNoRendezvous)
        throw UsageError("The ranks have more collectives than can be numbered once they have programs of their own.");
      for (std::size_t q = 0; q < root.size(); ++q)
        if (root[q] == p) own[q].trace.ops[id].target = static_cast<std::uint32_t>(free_);
      ++free_;
    }
  }

  Trace program_;
  const Rank& rank_;
  std::vector<RankNumbers> parts_;
  std::uint64_t& free_;
  std::map<std::uint16_t, std::vector<std::size_t>> joined_;  // by group
};

}  // namespace

bool has_rank(const RankNumbers& numbers, std::uint32_t number) {
  return std::binary_search(numbers.begin(), numbers.end(), number);
}

RankNumbers ranks_of(const Rank& rank) {
  RankNumbers numbers = rank.stands_for;
  numbers.insert(std::lower_bound(numbers.begin(), numbers.end(), rank.number), rank.number);
  return numbers;
}

Trace with_programs_in_parts(Trace trace, const std::function<std::vector<RankNumbers>(const Rank&)>& parts_of) {
  std::vector<std::vector<RankNumbers>> parts;
  bool divides = false;
  for (const Rank& rank : trace.rank_table) {
    parts.push_back(parts_of(rank));
    divides |= parts.back().size() > 1;
  }
  if (!divides) return trace;
  std::uint64_t free = first_free_rendezvous(trace);
  std::vector<RankProgram> programs;
  for (std::uint16_t r = 0; r < trace.rank_table.size(); ++r) {
    const Rank& rank = trace.rank_table[r];
    if (parts[r].size() == 1)
      programs.push_back({rank.number, one_rank(trace, r), rank.stands_for, rank.chunks});
    else
      ProgramParts(one_rank(trace, r), rank, std::move(parts[r]), free).append_to(programs);
  }
  return joined_ranks(std::move(programs));
}

}  // namespace memwall
