#include "sim/machine/rank_machine.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "sim/error.h"
#include "sim/machine/rank_sharing.h"
#include "sim/machine/shared_tier.h"
#include "sim/machine/tier_copies.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

constexpr std::size_t kMostTiers = 32767;  // so that signed 16 bits number them
constexpr std::size_t kMostLinks = 65535;  // likewise unsigned ones, core pools included

std::string suffix_of(const Trace& trace, std::size_t rank) {
  return " rank " + std::to_string(trace.rank_table[rank].number);
}

std::string called(const Link& link) { return "the link '" + link.name + "'"; }
std::string called(const Tier& tier) { return "the memory '" + tier.name + "'"; }

// The ranks' machine with what belongs to one further rank.
class RankAdder {
 public:
  RankAdder(RankMachine& ranks, const Trace& trace, RankSharing& sharing, std::size_t rank)
      : ranks_(ranks), trace_(trace), sharing_(sharing), rank_(rank) {}

  RankView add() && {
    add_links();
    for (std::size_t t = 0; t < ranks_.one.tiers.size(); ++t) add_tier(t);
    add_routes();
    return std::move(view_);
  }

 private:
  void add_links() {
    for (std::size_t l = 0; l < ranks_.one.links.size(); ++l) {
      const Link& link = ranks_.one.links[l];
      const std::size_t owner = sharing_.first_alike(rank_, link.sharers, called(link));
      if (owner != rank_) {
        view_.link.push_back(ranks_.views[owner].link[l]);
        continue;
      }
      if (ranks_.links.size() + ranks_.views.capacity() >= kMostLinks)
        throw UsageError("The trace holds " + std::to_string(ranks_.views.capacity()) + " ranks, and with a '" +
                         link.name + "' for each of them machine '" + ranks_.one.name +
                         "' would have more than 65535 links; expected fewer ranks in one trace.");
      view_.link.push_back(static_cast<std::uint16_t>(ranks_.links.size()));
      ranks_.links.push_back(link);
      ranks_.links.back().name += suffix_of(trace_, rank_);
    }
  }

  void add_tier(std::size_t t) {
    const std::uint32_t sharers = sharers_of_tier(ranks_.one, t);
    Tier tier = ranks_.one.tiers[t];
    const std::size_t owner = sharing_.first_alike(rank_, sharers, called(tier));
    if (owner != rank_) {
      view_.tier.push_back(ranks_.views[owner].tier[t]);
      return;
    }
    tier.name += suffix_of(trace_, rank_);
    if (tier.memory_link >= 0 && static_cast<std::size_t>(tier.memory_link) < view_.link.size())
      tier.memory_link = view_.link[static_cast<std::size_t>(tier.memory_link)];
    if (tier.write_link >= 0) tier.write_link = view_.link[static_cast<std::size_t>(tier.write_link)];
    if (ranks_.tiers.size() == kMostTiers)
      throw UsageError("The trace holds " + std::to_string(ranks_.views.capacity()) + " ranks, and with a '" +
                       ranks_.one.tiers[t].name + "' for each of them machine '" + ranks_.one.name +
                       "' would have more than 32767 tiers of memory; expected fewer ranks in one trace.");
    view_.tier.push_back(static_cast<std::uint16_t>(ranks_.tiers.size()));
    ranks_.tiers.push_back(std::move(tier));
  }

  void add_routes() {
    for (Route route : ranks_.one.routes) {
      route.from = view_.tier[route.from];
      route.to = view_.tier[route.to];
      for (std::uint16_t& link : route.links) link = view_.link[link];
      view_.routes.push_back(std::move(route));
    }
  }

  RankMachine& ranks_;
  const Trace& trace_;
  RankSharing& sharing_;
  const std::size_t rank_;
  RankView view_;
};

// Flows of a rank count as often as ranks of its program are behind the link.
void count_folded(RankMachine& ranks, RankSharing& sharing, std::size_t rank) {
  RankView& view = ranks.views[rank];
  const auto number = [&](const Link& link) -> double { return sharing.alike(rank, link.sharers, called(link)); };
  for (const Link& link : ranks.one.links) view.multiplicity.push_back(number(link));
  if (std::all_of(view.multiplicity.begin(), view.multiplicity.end(), [](double m) { return m == 1; }))
    return view.multiplicity.clear();
  for (std::size_t i = 0; i < view.routes.size(); ++i) {
    const Route& one = ranks.one.routes[i];
    std::vector<double> shares;
    for (const std::uint16_t link : one.links) shares.push_back(one.share_of(link) * view.multiplicity[link]);
    view.routes[i].link_shares = std::move(shares);
  }
}

// A tier that as many ranks of each program share is as large as the part of one; else see tier_copies.h.
void divide_tiers(RankMachine& ranks, RankSharing& sharing) {
  for (std::size_t t = 0; t < ranks.one.tiers.size(); ++t) {
    const std::uint32_t sharers = sharers_of_tier(ranks.one, t);
    if (sharers <= 1) continue;
    for (std::size_t r = 0; r < ranks.views.size(); ++r) {
      const std::string what = called(ranks.one.tiers[t]);
      if (sharing.first_alike(r, sharers, what) != r) continue;
      const std::uint32_t parts = parts_of_tier(sharing, r, sharers, what);
      Tier& tier = ranks.tiers[ranks.views[r].tier[t]];
      tier.capacity /= parts;
      tier.unavailable /= parts;
    }
  }
}

// The rows of the whole machine: each only where nothing before says the same, as most hosts reach their drives in one
// way.
class RouteList {
 public:
  explicit RouteList(std::vector<Route>& routes) : routes_(routes) {
    for (const Route& route : routes) known_.insert(key(route));
  }
  void add(const RankView& view) {
    for (const Route& route : view.routes)
      if (known_.insert(key(route)).second) routes_.push_back(route);
  }

 private:
  using Key = std::tuple<std::uint16_t, std::uint16_t, bool, std::vector<std::uint16_t>>;
  static Key key(const Route& route) { return {route.from, route.to, route.pageable, route.links}; }

  std::vector<Route>& routes_;
  std::set<Key> known_;
};

// Ranks that run one program each fill as much of what they share: one of them has its part.
void divide_shared_tiers(RankMachine& ranks, std::uint32_t folded) {
  for (std::size_t t = 0; t < ranks.tiers.size(); ++t) {
    Tier& tier = ranks.tiers[t];
    const Bytes parts = ranks_in_tier(ranks.one, t, folded);
    tier.capacity /= parts;
    tier.unavailable /= parts;
  }
}

std::uint32_t sharers_of_cores(const Machine& one) {
  const int host = one.tier("host");
  const std::uint32_t sharers = host < 0 ? 1 : sharers_of_tier(one, static_cast<std::size_t>(host));
  return std::max(1u, sharers / std::max(1u, one.host.numa_nodes));
}

double cores_of_pool(const HostCosts& host) { return static_cast<double>(host.cores) / std::max(1u, host.numa_nodes); }

void share_cores(RankMachine& ranks, const Trace& trace) {
  const std::uint32_t sharers = sharers_of_cores(ranks.one);
  ranks.core_pools = {{cores_of_pool(ranks.one.host), double(std::max(1u, std::min(trace.ranks, sharers)))}};
}

void share_cores(RankMachine& ranks, RankSharing& sharing) {
  const std::uint32_t sharers = sharers_of_cores(ranks.one);
  const std::string what = "the cores of a host";
  for (std::size_t r = 0; r < ranks.views.size(); ++r) {
    RankView& view = ranks.views[r];
    const std::size_t owner = sharing.first_alike(r, sharers, what);
    view.core_pool = owner == r ? ranks.core_pools.size() : ranks.views[owner].core_pool;
    if (owner == r) ranks.core_pools.push_back({cores_of_pool(ranks.one.host), 1});
    view.core_times = sharing.alike(r, sharers, what);
  }
}

RankView first_view(const Machine& one) {
  RankView view;
  for (std::size_t t = 0; t < one.tiers.size(); ++t) view.tier.push_back(static_cast<std::uint16_t>(t));
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
  if (trace.rank_table.empty()) {
    divide_shared_tiers(ranks, trace.ranks);
    if (one.host.cores > 0) share_cores(ranks, trace);
    return ranks;
  }
  RankSharing sharing(trace);
  RouteList routes(ranks.routes);
  for (std::size_t rank = 1; rank < trace.rank_table.size(); ++rank) {
    RankView view = RankAdder(ranks, trace, sharing, rank).add();
    routes.add(view);
    ranks.views.push_back(std::move(view));
  }
  divide_tiers(ranks, sharing);
  if (one.host.cores > 0) share_cores(ranks, sharing);
  for (std::size_t rank = 0; rank < ranks.views.size(); ++rank) count_folded(ranks, sharing, rank);
  return ranks;
}

std::vector<std::uint32_t> shared_sizes(const Machine& one) {
  std::set<std::uint32_t> sizes;
  for (const Link& link : one.links) sizes.insert(link.sharers);
  for (std::size_t t = 0; t < one.tiers.size(); ++t) sizes.insert(sharers_of_tier(one, t));
  if (one.host.cores > 0) sizes.insert(sharers_of_cores(one));
  return {sizes.upper_bound(1), sizes.end()};
}

double worker_threads(const HostCosts& host) {
  const double all = cores_of_pool(host);
  return host.optimizer_threads > 0 ? std::min<double>(host.optimizer_threads, all) : all;
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
