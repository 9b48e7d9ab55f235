#include "sim/machine/rank_machine.h"

#include <algorithm>
#include <string>

#include "sim/error.h"
#include "sim/machine/shared_tier.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

constexpr std::size_t kMostTiers = 255;  // a byte numbers them, in run files too

std::string suffix_of(const Trace& trace, std::size_t rank) {
  return " rank " + std::to_string(trace.rank_table[rank].number);
}

// The first rank of those that have the link in common with `rank`.
std::size_t owner_of(const Link& link, const Trace& trace, std::size_t rank) {
  const std::uint32_t sharers = std::max(1u, link.sharers);
  for (std::size_t i = 0; i < rank; ++i)
    if (trace.rank_table[i].number / sharers == trace.rank_table[rank].number / sharers) return i;
  return rank;
}

void add_tiers(RankMachine& ranks, RankView& view, const std::string& suffix) {
  for (std::size_t t = 0; t < ranks.one.tiers.size(); ++t) {
    view.tier.push_back(static_cast<std::uint8_t>(t));
    if (ranks.one.tiers[t].tier_class != TierClass::device) continue;
    Tier tier = ranks.one.tiers[t];
    tier.name += suffix;
    if (tier.memory_link >= 0 && static_cast<std::size_t>(tier.memory_link) < view.link.size())
      tier.memory_link = view.link[static_cast<std::size_t>(tier.memory_link)];
    if (ranks.tiers.size() == kMostTiers)
      throw UsageError("The trace holds " + std::to_string(ranks.views.capacity()) + " ranks, and with a '" +
                       ranks.one.tiers[t].name + "' for each of them machine '" + ranks.one.name +
                       "' would have more than 255 tiers of memory; expected fewer ranks in one trace.");
    view.tier.back() = static_cast<std::uint8_t>(ranks.tiers.size());
    ranks.tiers.push_back(std::move(tier));
  }
}

void add_links(RankMachine& ranks, RankView& view, const Trace& trace, std::size_t rank) {
  for (std::size_t l = 0; l < ranks.one.links.size(); ++l) {
    const std::size_t owner = owner_of(ranks.one.links[l], trace, rank);
    if (owner != rank) {
      view.link.push_back(ranks.views[owner].link[l]);
      continue;
    }
    view.link.push_back(static_cast<std::uint16_t>(ranks.links.size()));
    ranks.links.push_back(ranks.one.links[l]);
    ranks.links.back().name += suffix_of(trace, rank);
  }
}

void add_routes(RankMachine& ranks, RankView& view) {
  for (Route route : ranks.one.routes) {
    route.from = view.tier[route.from];
    route.to = view.tier[route.to];
    for (std::uint16_t& link : route.links) link = view.link[link];
    view.routes.push_back(std::move(route));
  }
}

// A row of the whole machine only where nothing before says the same: most hosts reach their drives in one way.
void append_new_routes(const RankView& view, std::vector<Route>& routes) {
  for (const Route& route : view.routes)
    if (std::none_of(routes.begin(), routes.end(), [&](const Route& known) {
          return known.from == route.from && known.to == route.to && known.pageable == route.pageable &&
                 known.links == route.links;
        }))
      routes.push_back(route);
}

// Ranks that run one program each fill as much of what they share: one of them has its part.
void divide_shared_tiers(RankMachine& ranks, std::uint32_t folded) {
  for (std::size_t t = 0; t < ranks.tiers.size(); ++t) {
    Tier& tier = ranks.tiers[t];
    const Bytes parts = ranks_in_tier(ranks.one, t, folded);
    tier.capacity /= parts;
    tier.unavailable /= parts;
  }
}

RankView first_view(const Machine& one) {
  RankView view;
  for (std::size_t t = 0; t < one.tiers.size(); ++t) view.tier.push_back(static_cast<std::uint8_t>(t));
  for (std::size_t l = 0; l < one.links.size(); ++l) view.link.push_back(static_cast<std::uint16_t>(l));
  view.routes = one.routes;
  return view;
}

}  // namespace

RankMachine machine_of_ranks(const Machine& one, const Trace& trace) {
  RankMachine ranks;
  static_cast<Machine&>(ranks) = one;
  ranks.one = one;
  ranks.views.reserve(rank_count(trace));
  ranks.views.push_back(first_view(ranks.one));
  if (trace.rank_table.empty()) divide_shared_tiers(ranks, trace.ranks);
  for (std::size_t rank = 1; rank < rank_count(trace); ++rank) {
    RankView view;
    add_links(ranks, view, trace, rank);
    add_tiers(ranks, view, suffix_of(trace, rank));
    add_routes(ranks, view);
    append_new_routes(view, ranks.routes);
    ranks.views.push_back(std::move(view));
  }
  return ranks;
}

std::vector<Bytes> untracked_by_tier(const RankMachine& ranks, const Trace& trace) {
  std::vector<Bytes> bytes(ranks.tiers.size(), 0);
  const int hbm = ranks.one.tier("hbm");
  if (hbm < 0) return bytes;
  for (std::size_t rank = 0; rank < ranks.views.size(); ++rank)
    bytes[ranks.views[rank].tier[static_cast<std::size_t>(hbm)]] =
        trace.rank_table.empty() ? trace.untracked_bytes : trace.rank_table[rank].untracked_bytes;
  return bytes;
}

}  // namespace memwall
