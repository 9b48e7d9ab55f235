#include "sim/engine/activities.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>
#include <utility>

#include "sim/error.h"

namespace memwall {
namespace {
// Loads that differ by less than this share are rounding, not contention.
constexpr double kSlack = 1e-9;

// Contention has made an activity so slow that its end is no instant any more.
[[noreturn]] void refuse_end(double speed) {
  throw UsageError("The run would last longer than 53 days (4.61e6 s, counted in picoseconds): work is slowed to " +
                   std::to_string(speed) +
                   " of its speed by what shares its links; expected a machine whose links carry the step in less.");
}

Time end_of(Time now, double picoseconds, double speed) {
  if (!(picoseconds < static_cast<double>((kLongestTime - now).count()))) refuse_end(speed);
  return now + Duration(static_cast<std::int64_t>(picoseconds));
}
}  // namespace

Activities::Activities(const RankMachine& machine, std::uint32_t ranks, std::size_t programs,
                       const std::vector<double>& cached, EventQueue& queue, EventKinds kinds, Observer* observer)
    : queue_(queue),
      kinds_(kinds),
      observer_(observer),
      links_(machine.links.size() + machine.core_pools.size()),
      results_(links_.size()),
      reported_(machine.links.size()),
      multiprocessor_share_(programs, 1.0) {
  for (std::size_t p = 0; p < machine.core_pools.size(); ++p) {
    links_[reported_ + p].capacity = machine.core_pools[p].cores;
    links_[reported_ + p].multiplicity = machine.core_pools[p].multiplicity;
  }
  for (std::size_t l = 0; l < reported_; ++l) {
    links_[l].capacity = machine.links[l].bandwidth;
    links_[l].multiplicity = std::max(1u, std::min(ranks, machine.links[l].sharers));
    const Link& link = machine.links[l];
    if (!link.falls_off()) continue;
    links_[l].cache = static_cast<std::uint32_t>(caches_.size());
    caches_.push_back(
        {static_cast<std::uint16_t>(l), link.bandwidth,
         WriteCache(static_cast<double>(link.write_cache), link.sustained, l < cached.size() ? cached[l] : 0)});
  }
}

ActivityId Activities::start(Time now, const ActivitySpec& spec) {
  ActivityId id;
  if (free_.empty()) {
    id = static_cast<ActivityId>(active_.size());
    active_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Activity& a = active_[id];
  a.owner = spec.owner;
  a.live = true;
  a.link_count = 0;
  a.speed = 1;  // what join() reports
  a.remaining = spec.duration;
  a.updated = now;
  a.rank = spec.rank;
  a.native = spec.native;
  a.on_multiprocessors = spec.on_multiprocessors;
  a.weight = spec.weight;
  a.position = static_cast<std::uint32_t>(running_.size());
  running_.push_back(id);
  // A transfer without a duration cannot be given a rate; it is instantaneous and loads nothing.
  if (spec.link_count > 0 && spec.bytes > 0 && spec.duration.count() > 0) {
    a.links = spec.links;
    a.link_shares = spec.link_shares;
    a.link_count = spec.link_count;
    a.bytes = spec.bytes;
    a.rate = static_cast<double>(spec.bytes) / to_seconds(spec.duration);
    join(now, a);
  } else if (spec.bytes > 0) {
    for (std::uint32_t i = 0; i < spec.link_count; ++i) {
      const double share = spec.link_shares == nullptr ? 1 : spec.link_shares[i];
      links_[spec.links[i]].carried += static_cast<double>(spec.bytes) * share * links_[spec.links[i]].multiplicity;
    }
  }
  a.speed = a.on_multiprocessors ? multiprocessor_share_[a.rank] : 1;
  const double slowed = static_cast<double>(spec.duration.count()) / a.speed;
  a.end = a.speed == 1 ? now + spec.duration : end_of(now, std::round(slowed), a.speed);
  queue_.push(a.end, kinds_.end, id);
  return id;
}

bool Activities::finish(Time now, ActivityId id, std::uint32_t& owner) {
  Activity& a = active_[id];
  if (!a.live || a.end != now) return false;  // it was slowed or sped up since, or the slot was reused
  owner = a.owner;
  if (a.link_count > 0) leave(now, a);
  a.live = false;
  running_[a.position] = running_.back();
  active_[running_[a.position]].position = a.position;
  running_.pop_back();
  free_.push_back(id);
  return true;
}

void Activities::touch(Time now, LinkState& link) {
  // What was captured together fitted then, whatever the nominal capacity says.
  const double capacity = std::max(link.capacity, link.native_load);
  const bool contended = link.load > capacity * (1 + kSlack);
  if ((contended || link.contended) && !solve_scheduled_) {
    solve_scheduled_ = true;
    queue_.push(now, kinds_.solve, 0, true);
  }
  link.contended = contended;
}

void Activities::join(Time now, Activity& a) {
  for (std::uint32_t i = 0; i < a.link_count; ++i) {
    LinkState& link = links_[a.links[i]];
    if (link.flows++ == 0) link.busy_since = now;
    link.load += a.rate * a.share(i) * link.multiplicity;
    if (a.native) link.native_load += a.rate * a.share(i);
    touch(now, link);
    if (observer_) report(now, a.links[i]);
  }
  if (!caches_.empty()) update_caches_of(now, a);
}

void Activities::leave(Time now, Activity& a) {
  for (std::uint32_t i = 0; i < a.link_count; ++i) {
    LinkState& link = links_[a.links[i]];
    LinkResult& result = results_[a.links[i]];
    if (a.link_shares == nullptr)
      result.bytes += a.bytes * static_cast<Bytes>(link.multiplicity);  // a whole number
    else
      link.carried += static_cast<double>(a.bytes) * a.share(i) * link.multiplicity;
    if (--link.flows == 0) {
      result.busy += now - link.busy_since;
      link.load = link.native_load = 0;  // no rounding error outlives a pause
    } else {
      link.load -= a.rate * a.share(i) * link.multiplicity;
      if (a.native) link.native_load -= a.rate * a.share(i);
    }
    touch(now, link);
    a.speed = 0;
    if (observer_) report(now, a.links[i]);
  }
  if (!caches_.empty()) update_caches_of(now, a);
}

double Activities::rate_of(std::uint16_t link) const {
  double rate = 0;
  for (const ActivityId id : running_) {
    const Activity& a = active_[id];
    for (std::uint32_t i = 0; i < a.link_count; ++i)
      if (a.links[i] == link) rate += a.rate * a.speed * a.share(i) * links_[link].multiplicity;
  }
  return rate;
}

void Activities::report(Time now, std::uint16_t link) {
  if (link < reported_) observer_->on_link_rate(now, link, rate_of(link));
}

// Where speeds are about to be solved, that tells what flows.
void Activities::update_caches_of(Time now, const Activity& a) {
  if (solve_scheduled_) return;
  for (std::uint32_t i = 0; i < a.link_count; ++i)
    if (const std::uint32_t cache = links_[a.links[i]].cache; cache != kNoCache) update_cache(now, caches_[cache]);
}

// REQUIRES: speeds are what they are from now on. Flows of a full cache that ask for less than it is emptied at are
// bounded elsewhere: that the link carries more again changes none of them.
void Activities::update_cache(Time now, Cache& cache) {
  WriteCache& content = cache.content;
  LinkState& link = links_[cache.link];
  const Time before = content.full_at();
  content.set_inflow(now, rate_of(cache.link));
  if (!content.full()) {
    link.capacity = cache.bandwidth;
    link.contended = link.load > std::max(link.capacity, link.native_load) * (1 + kSlack);
  }
  if (content.full_at() != kNever && content.full_at() != before)
    queue_.push(content.full_at(), kinds_.full, cache.link);
}

void Activities::fill_cache(Time now, std::uint32_t link) {
  Cache& cache = caches_[links_[link].cache];
  if (cache.content.full_at() != now) return;  // what flows in has changed since
  cache.content.fill(now);
  links_[link].capacity = cache.content.emptied_at();
  touch(now, links_[link]);
}

const std::vector<LinkResult>& Activities::results(Time now) {
  results_.resize(reported_);
  for (std::size_t l = 0; l < reported_; ++l) results_[l].bytes += std::llround(std::exchange(links_[l].carried, 0));
  for (Cache& cache : caches_) {
    cache.content.advance(std::max(now, cache.content.updated()));  // a pager's moves may end later
    results_[cache.link].cache_full = cache.content.time_full();
    results_[cache.link].cached = cache.content.held();
  }
  return results_;
}

void Activities::set_speed(Time now, ActivityId id, double speed) {
  Activity& a = active_[id];
  if (std::abs(speed - a.speed) <= kSlack * a.speed) return;
  const double done = static_cast<double>((now - a.updated).count()) * a.speed;
  a.remaining -= Duration(std::min<std::int64_t>(std::llround(done), a.remaining.count()));
  a.updated = now;
  a.speed = speed;
  // A flow that a saturated link leaves nothing would never end; the solver gives every flow a positive rate.
  assert(speed > 0);
  a.end = end_of(now, std::ceil(static_cast<double>(a.remaining.count()) / speed), speed);
  queue_.push(a.end, kinds_.end, id);
  if (observer_)
    for (std::uint32_t i = 0; i < a.link_count; ++i) report(now, a.links[i]);
}

void Activities::solve(Time now) {
  solve_scheduled_ = false;
  // Every running flow takes part: there are few (streams and copy engines), and those that
  // touch no contended link come out at their cap, unchanged.
  flows_.clear();
  for (const ActivityId id : running_)
    if (active_[id].link_count > 0) flows_.push_back(id);
  std::sort(flows_.begin(), flows_.end(),
            [&](ActivityId a, ActivityId b) { return active_[a].owner < active_[b].owner; });
  crossed_.clear();
  for (const ActivityId id : flows_)
    for (std::uint32_t i = 0; i < active_[id].link_count; ++i) {
      const std::uint16_t link = active_[id].links[i];
      crossed_.emplace_back(link, active_[id].share(i) * links_[link].multiplicity);
    }
  demands_.clear();
  const std::pair<std::uint16_t, double>* links = crossed_.data();
  for (const ActivityId id : flows_) {
    const Activity& a = active_[id];
    const double share = a.on_multiprocessors ? multiprocessor_share_[a.rank] : 1;
    demands_.push_back({a.weight, a.rate * share, {links, a.link_count}});
    links += a.link_count;
  }
  capacities_.clear();
  for (const LinkState& link : links_) capacities_.push_back(std::max(link.capacity, link.native_load));
  const std::span<const double> rates = fair_share_.rates(demands_, capacities_);
  for (std::size_t i = 0; i < flows_.size(); ++i) set_speed(now, flows_[i], rates[i] / active_[flows_[i]].rate);
  for (Cache& cache : caches_) update_cache(now, cache);
}

void Activities::set_multiprocessor_share(Time now, std::uint16_t rank, double share) {
  if (share == multiprocessor_share_[rank]) return;
  multiprocessor_share_[rank] = share;
  bool any_flow = false;
  for (const ActivityId id : std::vector<ActivityId>(running_)) {
    const Activity& a = active_[id];
    if (!a.on_multiprocessors || a.rank != rank) continue;
    if (a.link_count > 0)
      any_flow = true;
    else
      set_speed(now, id, share);
  }
  if (any_flow && !solve_scheduled_) {
    solve_scheduled_ = true;
    queue_.push(now, kinds_.solve, 0, true);
  }
}

}  // namespace memwall
