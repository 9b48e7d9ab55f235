#include "sim/trace/equal_places.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "sim/trace/program_parts.h"

namespace memwall {
namespace {

struct Member {
  std::uint32_t number = 0;
  std::size_t part = 0;
};
using Members = std::vector<Member>;  // by number

std::size_t count_of_parts(const Members& members) {
  std::size_t most = 0;
  for (const Member& m : members) most = std::max(most, m.part + 1);
  return most;
}

// Members of one part stay together where those whom they share with are as many of each part.
void refine(Members& members, std::uint32_t size) {
  using Counts = std::map<std::size_t, std::size_t>;  // of members, by part
  std::map<std::pair<std::size_t, Counts>, std::size_t> refined;
  std::vector<std::size_t> parts(members.size());
  for (std::size_t first = 0, last = 0; first < members.size(); first = last) {
    Counts counts;
    for (; last < members.size() && members[last].number / size == members[first].number / size; ++last)
      ++counts[members[last].part];
    for (std::size_t i = first; i < last; ++i)
      parts[i] = refined.try_emplace({members[i].part, counts}, refined.size()).first->second;
  }
  for (std::size_t i = 0; i < members.size(); ++i) members[i].part = parts[i];
}

Members members_of(const Trace& trace, const std::vector<std::uint32_t>& sizes) {
  Members members;
  for (std::size_t r = 0; r < trace.rank_table.size(); ++r)
    for (const std::uint32_t number : ranks_of(trace.rank_table[r])) members.push_back({number, r});
  std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.number < b.number; });
  for (std::size_t before = 0; before != count_of_parts(members);) {
    before = count_of_parts(members);
    for (const std::uint32_t size : sizes) refine(members, size);
  }
  return members;
}

}  // namespace

bool has_equal_places(const Trace& trace, const std::vector<std::uint32_t>& sizes) {
  const bool folds = std::any_of(trace.rank_table.begin(), trace.rank_table.end(),
                                 [](const Rank& rank) { return !rank.stands_for.empty(); });
  return !folds || count_of_parts(members_of(trace, sizes)) == trace.rank_table.size();
}

Trace with_equal_places(Trace trace, const std::vector<std::uint32_t>& sizes) {
  const Members members = members_of(trace, sizes);
  return with_programs_in_parts(std::move(trace), [&](const Rank& rank) {
    std::map<std::size_t, RankNumbers> parts;
    for (const std::uint32_t number : ranks_of(rank)) {
      const auto at = std::lower_bound(members.begin(), members.end(), number,
                                       [](const Member& m, std::uint32_t n) { return m.number < n; });
      parts[at->part].push_back(number);
    }
    std::vector<RankNumbers> numbers;
    for (auto& [part, ranks] : parts) numbers.push_back(std::move(ranks));
    return numbers;
  });
}

}  // namespace memwall
