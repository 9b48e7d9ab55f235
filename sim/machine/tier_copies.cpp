#include "sim/machine/tier_copies.h"

#include <algorithm>
#include <numeric>

#include "sim/machine/rank_sharing.h"
#include "sim/machine/shared_tier.h"
#include "sim/trace/ranks.h"

namespace memwall {

std::uint32_t parts_of_tier(RankSharing& sharing, std::size_t rank, std::uint32_t sharers, const std::string& what) {
  std::uint32_t parts = 0;
  for (const auto& [program, count] : sharing.behind(rank, sharers, what)) parts = std::gcd(parts, count);
  return std::max(1u, parts);
}

TierCopies::TierCopies(const RankMachine& ranks, const Trace& trace) {
  const auto stands_for_others = [](const Rank& rank) { return !rank.stands_for.empty(); };
  if (std::none_of(trace.rank_table.begin(), trace.rank_table.end(), stands_for_others)) return;
  RankSharing sharing(trace);
  tiers_ = ranks.tiers.size();
  copies_.assign(ranks.views.size() * tiers_, 1);
  for (std::size_t t = 0; t < ranks.one.tiers.size(); ++t) {
    const std::uint32_t sharers = sharers_of_tier(ranks.one, t);
    if (sharers <= 1) continue;
    const std::string what = "the memory '" + ranks.one.tiers[t].name + "'";
    for (std::size_t r = 0; r < ranks.views.size(); ++r)
      copies_[r * tiers_ + ranks.views[r].tier[t]] =
          sharing.alike(r, sharers, what) / parts_of_tier(sharing, r, sharers, what);
  }
  if (std::all_of(copies_.begin(), copies_.end(), [](std::uint32_t c) { return c == 1; }))
    copies_.clear();
  else
    rank_of_storage_ = storage_ranks(trace);
}

}  // namespace memwall
