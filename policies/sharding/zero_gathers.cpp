#include "policies/sharding/zero_gathers.h"

#include <algorithm>
#include <map>
#include <set>

#include "policies/sharding/zero_buckets.h"
#include "policies/sharding/zero_gather_plan.h"
#include "sim/error.h"

namespace memwall {
namespace {

using Streams = std::set<std::uint16_t>;

std::vector<StorageId> slice(const std::vector<StorageId>& all, std::size_t begin) {
  const std::size_t end = std::min(all.size(), begin + kMostTensors);
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end)};
}

class UpdatedGathers {
 public:
  UpdatedGathers(TraceEdit& edit, const ZeroAnalysis& analysis, const Partition& messages, const ZeroSettings& settings,
                 const Pricer& pricer)
      : t_(edit.base()),
        analysis_(analysis),
        messages_(messages),
        settings_(settings),
        communication_(edit, pricer, settings.ranks, "zero.gather"),
        is_parameter_(t_.storages.size(), false) {
    for (const StorageId id : analysis.parameters) is_parameter_[id] = true;
  }

  GatherSummary run() {
    OpId begin = 0;
    for (std::size_t p = 0; p < analysis_.passes.size(); ++p) {
      if (!analysis_.passes[p].before_update) continue;
      const OpId end =
          p + 1 < analysis_.passes.size() ? analysis_.passes[p + 1].pass.begin : static_cast<OpId>(t_.ops.size());
      gather_step(begin, end);
      begin = end;
    }
    if (communication_.collectives() == 0)
      throw UsageError(
          "Policy 'zero' cannot split trace '" + t_.name +
          "': no op of the optimizer step is known to write a parameter, so nobody knows when to gather them.");
    summary_.gathers = communication_.collectives();
    summary_.bytes_sent = communication_.bytes_sent();
    return summary_;
  }

 private:
  // The updates among ops [begin, end).
  void gather_step(OpId begin, OpId end) {
    std::map<StorageId, OpId> written;  // by what last
    Streams streams;
    OpId last = kNoOp;
    for (const OpId id : analysis_.updates) {
      if (id < begin || id >= end) continue;
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.access == Access::write && is_parameter_[use.storage]) {
          written[use.storage] = id;
          streams.insert(t_.ops[id].stream);
          last = id;
        }
    }
    if (written.empty()) return;
    std::vector<std::pair<OpId, StorageId>> order;
    for (const auto& [parameter, op] : written) order.emplace_back(op, parameter);
    std::sort(order.begin(), order.end());
    std::vector<Bytes> sizes;
    for (const auto& [op, parameter] : order) sizes.push_back(t_.storages[parameter].bytes);
    std::uint32_t event = 0;
    for (const auto& group : fill_buckets(sizes, settings_.bucket, BucketRule::never_exceed)) {
      std::vector<StorageId> parameters;
      for (const std::size_t i : group) parameters.push_back(order[i].second);
      const InsertionPoint point{order[group.back()].first, true};
      const Bytes message = messages_.message(parameters);
      communication_.after(point, streams);
      communication_.collective(point, CollectiveKind::all_gather, message, parameters, parameters);
      summary_.largest_unit = std::max(summary_.largest_unit, message);
      event = communication_.mark(point);
      if (!settings_.overlap) communication_.hold(point, event, streams);
    }
    if (settings_.overlap) communication_.hold({last, true}, event, streams);
  }

  const Trace& t_;
  const ZeroAnalysis& analysis_;
  const Partition& messages_;
  const ZeroSettings& settings_;
  CommunicationStream communication_;
  std::vector<bool> is_parameter_;
  GatherSummary summary_;
};

class UseGathers {
 public:
  UseGathers(TraceEdit& edit, const ZeroAnalysis& analysis, const Partition& messages, const ZeroSettings& settings,
             const Pricer& pricer)
      : edit_(edit),
        t_(edit.base()),
        analysis_(analysis),
        messages_(messages),
        settings_(settings),
        pricer_(pricer),
        communication_(edit, pricer, settings.ranks, "zero.gather"),
        plan_(plan_gathers(t_, analysis, settings)) {}

  GatherSummary run() {
    starting_.resize(plan_.executions.size());
    ending_.resize(plan_.executions.size());
    for (std::size_t i = 0; i < plan_.lifetimes.size(); ++i) {
      starting_[plan_.lifetimes[i].first].push_back(i);
      ending_[plan_.lifetimes[i].last].push_back(i);
    }
    whole_.assign(plan_.lifetimes.size(), kNoStorage);
    events_.assign(plan_.executions.size(), {});
    for (std::size_t v = 0; v < plan_.executions.size(); ++v) add_gathers(v);
    summary_.gathers = communication_.collectives();
    summary_.bytes_sent = communication_.bytes_sent();
    summary_.units = plan_.units;
    compare_with_keeping();
    return summary_;
  }

 private:
  // In whole megabytes where it is more than one: a number that people type.
  static Bytes typeable(Bytes distance) {
    constexpr Bytes kMB = 1'000'000;
    return distance <= kMB ? distance : (distance + kMB - 1) / kMB * kMB;
  }

  void compare_with_keeping() {
    ZeroSettings kept = settings_;
    kept.reuse_distance = typeable(plan_.distance_over_recompute);
    if (kept.reuse_distance <= settings_.reuse_distance) return;
    const Bytes bytes = bytes_sent(plan_gathers(t_, analysis_, kept));
    if (bytes >= summary_.bytes_sent) return;
    summary_.kept_distance = kept.reuse_distance;
    summary_.kept_bytes_sent = bytes;
  }

  Bytes bytes_sent(const GatherPlan& plan) const {
    std::map<std::size_t, std::vector<StorageId>> gathered;  // by execution
    for (const GatheredLifetime& lifetime : plan.lifetimes) gathered[lifetime.first].push_back(lifetime.parameter);
    Bytes bytes = 0;
    for (const auto& [execution, parameters] : gathered)
      for (std::size_t from = 0; from < parameters.size(); from += kMostTensors)
        bytes +=
            pricer_.wire_bytes(CollectiveKind::all_gather, messages_.message(slice(parameters, from)), settings_.ranks);
    return bytes;
  }

  void add_gathers(std::size_t v) {
    const UnitExecution& now = plan_.executions[v];
    const InsertionPoint begin{now.ops.front(), false}, end{now.ops.back(), true};
    if (!prefetched(v)) gather(v, begin);
    for (const std::uint32_t event : events_[v]) communication_.hold(begin, event, now.streams);
    if (v + 1 < plan_.executions.size() && prefetched(v + 1)) gather(v + 1, begin);
    for (const std::size_t i : starting_[v]) current_[plan_.lifetimes[i].parameter] = whole_[i];
    for (const OpId id : now.ops) repoint(id);
    release(v, end);
  }

  bool prefetched(std::size_t v) const {
    return settings_.prefetch && v > 0 &&
           !analysis_.updates_between(plan_.executions[v - 1].ops.back(), plan_.executions[v].ops.front());
  }

  void gather(std::size_t v, InsertionPoint point) {
    if (starting_[v].empty()) return;
    // What compute still reads may not be overwritten by the next gather, which takes the same memory; and
    // slices that an update writes must be there.
    if (must_wait_ || update_since_last_gather(point.op)) communication_.after(point, streams_to_await());
    must_wait_ = false;
    last_gather_ = point.op;
    std::vector<StorageId> slices, whole;
    Bytes unit = 0;
    for (const std::size_t i : starting_[v]) {
      const StorageId parameter = plan_.lifetimes[i].parameter;
      const Storage& s = t_.storages[parameter];
      whole_[i] =
          communication_.storage(messages_.message({parameter}), StorageKind::parameter, s.place, t_.strings[s.label]);
      edit_.alloc(point, whole_[i]);
      slices.push_back(parameter);
      whole.push_back(whole_[i]);
    }
    for (std::size_t from = 0; from < slices.size(); from += kMostTensors) {
      const std::vector<StorageId> part = slice(slices, from);
      const Bytes message = messages_.message(part);
      communication_.collective(point, CollectiveKind::all_gather, message, part, slice(whole, from));
      events_[v].push_back(communication_.mark(point));
      unit += message;
    }
    summary_.largest_unit = std::max(summary_.largest_unit, unit);
  }

  bool update_since_last_gather(OpId before) const {
    const auto next = last_gather_ == kNoOp
                          ? analysis_.updates.begin()
                          : std::upper_bound(analysis_.updates.begin(), analysis_.updates.end(), last_gather_);
    return next != analysis_.updates.end() && *next < before;
  }

  Streams streams_to_await() const {
    Streams streams = released_;
    for (const OpId id : analysis_.updates)
      if (runs_on_device(t_.ops[id].kind)) streams.insert(t_.ops[id].stream);
    return streams;
  }

  void repoint(OpId id) {
    std::set<StorageId> used;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (current_.contains(use.storage)) used.insert(use.storage);
    for (const StorageId parameter : used) edit_.repoint(id, parameter, current_.at(parameter));
  }

  void release(std::size_t v, InsertionPoint point) {
    for (const std::size_t i : ending_[v]) {
      edit_.free(point, whole_[i]);
      current_.erase(plan_.lifetimes[i].parameter);
    }
    if (ending_[v].empty()) return;
    must_wait_ = true;
    released_.insert(plan_.executions[v].streams.begin(), plan_.executions[v].streams.end());
  }

  TraceEdit& edit_;
  const Trace& t_;
  const ZeroAnalysis& analysis_;
  const Partition& messages_;
  const ZeroSettings& settings_;
  const Pricer& pricer_;
  CommunicationStream communication_;
  GatherPlan plan_;
  std::vector<std::vector<std::size_t>> starting_, ending_;  // lifetimes, by execution
  std::vector<StorageId> whole_;                             // by lifetime: the gathered parameter
  std::vector<std::vector<std::uint32_t>> events_;           // by execution: its gathers have arrived
  std::map<StorageId, StorageId> current_;                   // parameter to where it stands whole now
  bool must_wait_ = false;                                   // memory was given back since the last gather
  Streams released_;
  OpId last_gather_ = kNoOp;
  GatherSummary summary_;
};

}  // namespace

GatherSummary gather_updated(TraceEdit& edit, const ZeroAnalysis& analysis, const Partition& messages,
                             const ZeroSettings& settings, const Pricer& pricer) {
  return UpdatedGathers(edit, analysis, messages, settings, pricer).run();
}

GatherSummary gather_before_use(TraceEdit& edit, const ZeroAnalysis& analysis, const Partition& messages,
                                const ZeroSettings& settings, const Pricer& pricer) {
  return UseGathers(edit, analysis, messages, settings, pricer).run();
}

}  // namespace memwall
