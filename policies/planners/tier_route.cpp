#include "policies/planners/tier_route.h"

#include <algorithm>
#include <utility>

#include "sim/error.h"

namespace memwall {
namespace {

bool are_joined(const Machine& machine, int a, int b) {
  return a >= 0 && b >= 0 && machine.route(a, b, false) != nullptr && machine.route(b, a, false) != nullptr;
}

}  // namespace

TierRoute::TierRoute(TransferStyle style, int tier, std::vector<Leg> out)
    : style_(std::move(style)), tier_(tier), out_(std::move(out)) {
  for (auto leg = out_.rbegin(); leg != out_.rend(); ++leg) back_.push_back({leg->to, leg->from});
}

std::optional<TierRoute> TierRoute::find(const Machine& machine, const std::string& name) {
  const int device = machine.tier("hbm"), host = machine.tier("host"), tier = machine.tier(name);
  if (device < 0 || tier < 0 || tier == device) return std::nullopt;
  TransferStyle style;
  style.tier = name;
  style.tier_class = machine.tiers[static_cast<std::size_t>(tier)].tier_class;
  const bool staged = tier != host && are_joined(machine, device, host) && are_joined(machine, host, tier);
  const bool direct = are_joined(machine, device, tier);
  if (staged && (!direct || style.tier_class == TierClass::storage)) {
    style.through = "host";
    return TierRoute(style, tier, {{device, host}, {host, tier}});
  }
  if (direct) return TierRoute(style, tier, {{device, tier}});
  return std::nullopt;
}

TierRoute TierRoute::required(const std::string& planner, const Machine& machine, const std::string& tier) {
  if (machine.tier(tier) < 0)
    throw UsageError("Policy '" + planner + "' needs a tier '" + tier + "'; machine '" + machine.name + "' has none.");
  if (auto found = find(machine, tier)) return *std::move(found);
  throw UsageError("Policy '" + planner + "' copies to '" + tier + "' and back; machine '" + machine.name +
                   "' has no way from 'hbm' there and back, neither straight nor through 'host'.");
}

TransferStyle TierRoute::style() const { return style_; }

std::optional<RoutedCopy> TierRoute::earliest_out(const Ledger& ledger, Bytes bytes, Time ready) const {
  RoutedCopy copy;
  for (const auto [from, to] : out_) {
    const auto span = ledger.earliest(from, to, bytes, ready);
    if (!span) return std::nullopt;
    copy.legs.push_back(*span);
    ready = span->end;
  }
  return copy;
}

std::optional<RoutedCopy> TierRoute::latest_back(const Ledger& ledger, Bytes bytes, Time deadline) const {
  RoutedCopy copy;
  for (auto leg = back_.rbegin(); leg != back_.rend(); ++leg) {
    const auto span = ledger.latest(leg->from, leg->to, bytes, deadline);
    if (!span) return std::nullopt;
    copy.legs.push_back(*span);
    deadline = span->begin;
  }
  std::reverse(copy.legs.begin(), copy.legs.end());
  return copy;
}

void TierRoute::reserve(const std::vector<Leg>& legs, Ledger& ledger, Bytes bytes, const RoutedCopy& copy) {
  for (std::size_t i = 0; i < legs.size(); ++i) ledger.reserve(legs[i].from, legs[i].to, bytes, copy.legs[i]);
}
void TierRoute::reserve_out(Ledger& ledger, Bytes bytes, const RoutedCopy& copy) const {
  reserve(out_, ledger, bytes, copy);
}
void TierRoute::reserve_back(Ledger& ledger, Bytes bytes, const RoutedCopy& copy) const {
  reserve(back_, ledger, bytes, copy);
}

Duration TierRoute::alone(const std::vector<Leg>& legs, const Ledger& ledger, Bytes bytes) {
  Duration sum{};
  for (const auto [from, to] : legs) sum += ledger.alone(from, to, bytes);
  return sum;
}
Duration TierRoute::alone_out(const Ledger& ledger, Bytes bytes) const { return alone(out_, ledger, bytes); }
Duration TierRoute::alone_back(const Ledger& ledger, Bytes bytes) const { return alone(back_, ledger, bytes); }

BytesPerSecond TierRoute::rate_out(const Machine& machine) const {
  BytesPerSecond least = 0;
  for (const auto [from, to] : out_) {
    const BytesPerSecond rate = machine.route(from, to, false)->bandwidth;
    if (least == 0 || rate < least) least = rate;
  }
  return least;
}

}  // namespace memwall
