#include "policies/profile/latest_safe.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "policies/profile/ledger.h"
#include "sim/error.h"

namespace memwall {
namespace {

class FetchIssue {
 public:
  FetchIssue(MemoryPlan plan, const StepProfile& profile)
      : plan_(std::move(plan)), p_(profile), device_(tier("hbm")), ledger_(profile) {
    for (const TransferStyle& style : plan_.tiers) tiers_.push_back(tier(style.tier));
    for (const PlannedRerun& rerun : plan_.reruns)
      for (const OpId id : rerun.ops)
        for (const Use& use : p_.trace().uses_of(p_.trace().ops[id]))
          touched_by_reruns_[use.storage].push_back(rerun.at);
  }

  MemoryPlan run() {
    for (const StorageDecision& d : plan_.storages) take_fixed_copies(d);
    std::vector<Open> open;
    for (StorageDecision& d : plan_.storages)
      for (PlannedFetch& fetch : d.fetches)
        if (fetch.latest_safe) open.push_back({&d, &fetch});
    std::stable_sort(open.begin(), open.end(), [](const Open& a, const Open& b) { return b.fetch->at < a.fetch->at; });
    for (const Open& one : open) issue(*one.decision, *one.fetch);
    return std::move(plan_);
  }

 private:
  struct Open {
    const StorageDecision* decision;
    PlannedFetch* fetch;
  };

  int tier(const std::string& name) const {
    const int found = p_.machine().tier(name);
    if (found < 0)
      throw UsageError("The plan needs a tier '" + name + "', which machine '" + p_.machine().name +
                       "' does not have.");
    return found;
  }

  // From the tier to the device, or by way of the tier in which copies are staged. The other way round for copies out.
  struct Leg {
    int from, to;
  };
  std::vector<Leg> way_in(std::uint8_t index) const {
    const int from = tiers_[index];
    const TransferStyle& style = plan_.tiers[index];
    if (style.through.empty()) return {joined(from, device_)};
    const int stage = tier(style.through);
    return {joined(from, stage), joined(stage, device_)};
  }
  std::vector<Leg> way_out(std::uint8_t index) const {
    std::vector<Leg> way = way_in(index);
    std::reverse(way.begin(), way.end());
    for (Leg& leg : way) leg = joined(leg.to, leg.from);
    return way;
  }
  Leg joined(int from, int to) const {
    const Machine& machine = p_.machine();
    if (machine.route(from, to, false) != nullptr) return {from, to};
    throw UsageError("Machine '" + machine.name + "' has no route from " +
                     machine.tiers[static_cast<std::size_t>(from)].name + " to " +
                     machine.tiers[static_cast<std::size_t>(to)].name + ", which the plan needs.");
  }

  Bytes bytes(const StorageDecision& d) const { return p_.trace().storages[d.storage].bytes; }
  // When the device comes to the point: with the next of its ops, for the host's own run ahead of it.
  Time time_of(const PlanPoint& at) const {
    const std::vector<Op>& ops = p_.trace().ops;
    if (at.after && at.op < ops.size() && runs_on_device(ops[at.op].kind)) return p_.end(at.op);
    for (OpId id = at.op; id < ops.size(); ++id)
      if (runs_on_device(ops[id].kind)) return p_.start(id);
    return Time{p_.step_time()};
  }

  // Copies whose points are given: they begin there, or as soon as links have room.
  void take_fixed_copies(const StorageDecision& d) {
    for (const PlannedCopy& copy : d.copies) take(way_out(copy.tier), bytes(d), time_of(copy.at));
    for (const PlannedFetch& fetch : d.fetches)
      if (!fetch.latest_safe && fetch.tier != PlannedFetch::kNoTier)
        take(way_in(fetch.tier), bytes(d), time_of(fetch.at));
  }

  void take(const std::vector<Leg>& way, Bytes bytes, Time ready) {
    for (const auto [from, to] : way) {
      const auto span = ledger_.earliest(from, to, bytes, ready);
      if (!span) return;
      ledger_.reserve(from, to, bytes, *span);
      ready = span->end;
    }
  }

  // Leg by leg from the last; nothing where a link has no time left.
  std::optional<Time> latest_begin(const std::vector<Leg>& way, Bytes bytes, Time deadline) {
    std::vector<Ledger::Span> spans(way.size());  // one behind the other: none takes what another was given
    for (std::size_t i = way.size(); i-- > 0;) {
      const auto span = ledger_.latest(way[i].from, way[i].to, bytes, deadline);
      if (!span) return std::nullopt;
      spans[i] = *span;
      deadline = span->begin;
    }
    for (std::size_t i = 0; i < way.size(); ++i) ledger_.reserve(way[i].from, way[i].to, bytes, spans[i]);
    return deadline;
  }

  void issue(const StorageDecision& d, PlannedFetch& fetch) {
    fetch.latest_safe = false;
    if (fetch.tier == PlannedFetch::kNoTier) return;
    PlanPoint at = earliest_point(d, fetch);
    const std::vector<Leg> way = way_in(fetch.tier);
    if (const auto begin = latest_begin(way, bytes(d), time_of(fetch.at)))
      at = std::max(at, PlanPoint{p_.op_running_at(*begin), false, 0});
    else
      take(way, bytes(d), time_of(at));
    fetch.at = std::min(at, fetch.at);
  }

  static PlanPoint behind(const PlanPoint& point) { return {point.op, point.after, point.order + 1}; }

  // Behind the drop before it, behind what renews its copy, and behind re-runs that make or read it without it.
  PlanPoint earliest_point(const StorageDecision& d, const PlannedFetch& fetch) const {
    PlanPoint first{0, false, 0};
    for (const PlannedDrop& drop : d.drops)
      if (drop.at < fetch.at) first = std::max(first, behind(drop.at));
    if (const auto touched = touched_by_reruns_.find(d.storage); touched != touched_by_reruns_.end())
      for (const PlanPoint& rerun : touched->second)
        if (rerun < fetch.at) first = std::max(first, behind(rerun));
    for (const HomeUpdate& update : d.updates)
      if (update.op < fetch.at.op) first = std::max(first, PlanPoint{update.op + 1, false, 0});
    return first;
  }

  MemoryPlan plan_;
  const StepProfile& p_;
  const int device_;
  std::vector<int> tiers_;  // of the machine, by tier of the plan
  std::map<StorageId, std::vector<PlanPoint>> touched_by_reruns_;
  Ledger ledger_;
};

}  // namespace

bool has_latest_safe(const MemoryPlan& plan) {
  return std::any_of(plan.storages.begin(), plan.storages.end(), [](const StorageDecision& d) {
    return std::any_of(d.fetches.begin(), d.fetches.end(), [](const PlannedFetch& f) { return f.latest_safe; });
  });
}

MemoryPlan issued_latest_safe(MemoryPlan plan, const StepProfile& profile) {
  return has_latest_safe(plan) ? FetchIssue(std::move(plan), profile).run() : plan;
}

}  // namespace memwall
