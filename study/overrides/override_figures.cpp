#include "study/overrides/override_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "models/hw/quantity.h"
#include "sim/byte_units.h"
#include "sim/trace/ranks.h"
#include "traces/run/route_bytes.h"

namespace memwall {
namespace {

// How many ranks a collective may be priced for, or run over.
void add_ranks_of(const Op& op, const Trace& trace, std::set<std::uint32_t>& ranks) {
  if (op.group < trace.groups.size()) {
    ranks.insert(trace.groups[op.group].ranks);
    ranks.insert(static_cast<std::uint32_t>(trace.groups[op.group].members.size()));
  }
  ranks.insert({2, trace.ranks, trace.job_ranks, static_cast<std::uint32_t>(rank_count(trace))});
}

}  // namespace

OverrideFigures::OverrideFigures(const Run& run, const std::vector<MachineNumber>& numbers)
    : run_(run),
      stated_links_{"hbm", "host_dram"},
      route_bytes_(memwall::route_bytes(run)),
      slowed_(run.machine.one.routes.size(), false) {
  constexpr std::string_view kPrefix = "link.", kSuffix = ".bandwidth";
  for (const MachineNumber& number : numbers)
    if (number.path.starts_with(kPrefix) && number.path.ends_with(kSuffix))
      stated_links_.insert(number.path.substr(kPrefix.size(), number.path.size() - kPrefix.size() - kSuffix.size()));
  look_at_ops();
}

void OverrideFigures::look_at_ops() {
  const Trace& trace = run_.trace;
  std::vector<int> tier_of_place;
  for (const std::string& place : trace.places) tier_of_place.push_back(run_.machine.one.tier(place));
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.kind == OpKind::collective && collective_ranks_.empty()) collective_ranks_.insert(2);
    if (op.kind == OpKind::collective) add_ranks_of(op, trace, collective_ranks_);
    if (op.kind == OpKind::copy || op.kind == OpKind::storage_io) look_at_transfer(id, tier_of_place);
  }
  collective_ranks_.erase(0);
  collective_ranks_.erase(1);
  // A pager's moves tell no time of their own.
  for (std::size_t r = 0; r < slowed_.size(); ++r)
    if (!run_.result.moves.empty()) slowed_[r] = true;
}

void OverrideFigures::look_at_transfer(OpId id, const std::vector<int>& tier_of_place) {
  const Op& op = run_.trace->ops[id];
  const auto& routes = run_.machine.one.routes;
  const Route* route = route_among(routes, tier_of_place[op.from], tier_of_place[op.to], op.pageable);
  if (route == nullptr || id >= run_.result.records.size()) return;
  const OpRecord& record = run_.result.records[id];
  if (record.start != kNever && record.end - record.start > op.duration)
    slowed_[static_cast<std::size_t>(route - routes.data())] = true;
}

Bytes OverrideFigures::link_bytes(std::size_t link) const {
  Bytes bytes = 0;
  for (const RankView& view : run_.machine.views) bytes += run_.result.links[view.link[link]].bytes;
  return bytes;
}

double OverrideFigures::peak_rate(std::size_t link) const {
  double peak = 0;
  for (const RankView& view : run_.machine.views) {
    if (view.link[link] >= run_.link_rates.size()) return std::numeric_limits<double>::infinity();
    for (const RatePoint& point : run_.link_rates[view.link[link]]) peak = std::max(peak, point.bytes_per_second);
  }
  return peak;
}

bool OverrideFigures::is_used(std::size_t tier) const {
  for (const RankView& view : run_.machine.views)
    if (run_.result.tiers[view.tier[tier]].peak_allocated > 0) return true;
  for (std::size_t r = 0; r < route_bytes_.size(); ++r) {
    const Route& route = run_.machine.one.routes[r];
    if (route_bytes_[r] > 0 && (route.from == tier || route.to == tier)) return true;
  }
  const auto& name = run_.machine.one.tiers[tier].name;
  const auto& places = run_.trace->places;
  const auto place = static_cast<std::size_t>(std::find(places.begin(), places.end(), name) - places.begin());
  return place < places.size() && std::any_of(run_.trace->ops.begin(), run_.trace->ops.end(), [&](const Op& op) {
           return op.kind == OpKind::host_work && op.from == place;
         });
}

Bytes OverrideFigures::peak_reserved(std::size_t tier) const {
  Bytes peak = 0;
  for (const RankView& view : run_.machine.views)
    peak = std::max(peak, run_.result.tiers[view.tier[tier]].peak_reserved);
  return peak;
}

bool OverrideFigures::fits_in(std::size_t tier, Bytes bytes) const {
  // Pagers, rewriters and some settings of the allocator look at what there is, not only at whether it is enough.
  return run_.pager.empty() && run_.policies.empty() && run_.allocator_settings.empty() && peak_reserved(tier) <= bytes;
}

std::string bandwidth_text(double bytes_per_second) {
  return scaled_text(bytes_per_second, kDecimalBytes, 4, TrailingZeros::dropped) + "/s";
}

std::string memory_text(Bytes bytes) {
  return scaled_text(static_cast<double>(bytes), kDecimalBytes, 4, TrailingZeros::dropped);
}

bool same_quantity(const std::string& a, const std::string& b) {
  for (int d = 0; d <= static_cast<int>(Dimension::count); ++d) {
    try {
      if (parse_quantity(a, static_cast<Dimension>(d)) == parse_quantity(b, static_cast<Dimension>(d))) return true;
    } catch (const QuantityError&) {  // of another dimension
    }
  }
  return false;
}

}  // namespace memwall
