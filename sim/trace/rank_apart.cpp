#include "sim/trace/rank_apart.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "sim/trace/program_parts.h"

namespace memwall {
namespace {

// Those that have most in common with the rank first, itself last.
std::vector<RankNumbers> parts_of(const RankNumbers& ranks, std::uint32_t number, const Closeness& closeness) {
  std::map<int, RankNumbers, std::greater<>> others;
  for (const std::uint32_t rank : ranks)
    if (rank != number) others[closeness(rank, number)].push_back(rank);
  std::vector<RankNumbers> parts;
  for (auto& [close, part] : others) parts.push_back(std::move(part));
  if (has_rank(ranks, number)) parts.push_back({number});
  return parts;
}

}  // namespace

Trace with_rank_apart(Trace trace, std::uint32_t number, const Closeness& closeness) {
  if (std::none_of(trace.rank_table.begin(), trace.rank_table.end(),
                   [&](const Rank& rank) { return !rank.stands_for.empty() && has_rank(ranks_of(rank), number); }))
    return trace;
  return with_programs_in_parts(std::move(trace),
                                [&](const Rank& rank) { return parts_of(ranks_of(rank), number, closeness); });
}

}  // namespace memwall
