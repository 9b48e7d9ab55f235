#include "sim/machine/rank_sharing.h"

#include <algorithm>
#include <map>

#include "sim/error.h"

namespace memwall {

RankSharing::RankSharing(const Trace& trace) : trace_(trace) {
  for (std::size_t r = 0; r < trace.rank_table.size(); ++r) {
    members_.push_back({trace.rank_table[r].number, r});
    for (const std::uint32_t number : trace.rank_table[r].stands_for) members_.push_back({number, r});
  }
  const auto by_number = [](const Member& a, const Member& b) { return a.number < b.number; };
  std::sort(members_.begin(), members_.end(), by_number);
  const auto twice = std::adjacent_find(members_.begin(), members_.end(),
                                        [](const Member& a, const Member& b) { return a.number == b.number; });
  if (twice != members_.end())
    throw UsageError("Trace '" + trace.name + "' holds rank " + std::to_string(twice->number) +
                     " twice; expected each rank in one program.");
}

RankSharing::Sharing RankSharing::count(std::uint32_t sharers, const std::string& what) const {
  Sharing sharing{sharers, std::vector<std::vector<RanksOfProgram>>(trace_.rank_table.size()), {}};
  for (std::size_t first = 0; first < members_.size();) {
    std::map<std::size_t, std::uint32_t> counts;
    std::size_t last = first;
    for (; last < members_.size() && members_[last].number / sharers == members_[first].number / sharers; ++last)
      ++counts[members_[last].rank];
    std::vector<RanksOfProgram> here;
    for (const auto& [program, count] : counts) here.push_back({program, count});
    for (std::size_t i = first; i < last; ++i) {
      std::vector<RanksOfProgram>& known = sharing.behind[members_[i].rank];
      if (known.empty()) known = here;
      if (known != here)
        throw UsageError("Trace '" + trace_.name + "': the program of rank " +
                         std::to_string(trace_.rank_table[members_[i].rank].number) + " stands for rank " +
                         std::to_string(members_[i].number) + " too, which shares " + what + " of " +
                         std::to_string(sharers) +
                         " GPUs with other ranks than the first; expected ranks in equal places.");
    }
    first = last;
  }
  std::map<std::vector<RanksOfProgram>, std::size_t> firsts;
  for (std::size_t r = 0; r < sharing.behind.size(); ++r)
    sharing.first.push_back(firsts.emplace(sharing.behind[r], r).first->second);
  return sharing;
}

const RankSharing::Sharing& RankSharing::sharing_of(std::uint32_t sharers, const std::string& what) {
  for (const Sharing& known : known_)
    if (known.sharers == sharers) return known;
  return known_.emplace_back(count(sharers, what));
}

const std::vector<RanksOfProgram>& RankSharing::behind(std::size_t rank, std::uint32_t sharers,
                                                       const std::string& what) {
  return sharing_of(sharers, what).behind[rank];
}

std::uint32_t RankSharing::alike(std::size_t rank, std::uint32_t sharers, const std::string& what) {
  if (sharers <= 1) return 1;
  for (const RanksOfProgram& those : behind(rank, sharers, what))
    if (those.program == rank) return those.count;
  return 1;
}

std::size_t RankSharing::first_alike(std::size_t rank, std::uint32_t sharers, const std::string& what) {
  if (sharers == 0) return 0;
  return sharers == 1 ? rank : sharing_of(sharers, what).first[rank];
}

}  // namespace memwall
