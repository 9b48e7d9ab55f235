#include "traces/run/analysis/compare.h"

#include <algorithm>
#include <tuple>

#include "sim/trace/derived_lives.h"
#include "traces/run/analysis/compare_parts.h"
#include "traces/run/analysis/summary.h"

namespace memwall {
namespace {

void note_difference(Differences& differences, OpChange change, const Run& run, OpId id, const OpCost& base,
                     const OpCost& other) {
  const Op& op = run.trace->ops[id];
  OpDifference& d =
      differences.of(change, std::string(name_of(run, id)), run.trace->strings[op.operator_name], op.kind, op.phase);
  ++d.count;
  d.base_time += base.time;
  d.other_time += other.time;
  d.base_bytes += base.bytes;
  d.other_bytes += other.bytes;
}

void compare_ops(const Run& base, const Run& other, const std::vector<OpPair>& pairs, Comparison& out) {
  std::vector<bool> kept(base.trace->ops.size(), false), present(other.trace->ops.size(), false);
  Differences differences;
  for (const OpPair& pair : pairs) {
    kept[pair.base] = present[pair.other] = true;
    const OpCost a = cost_of(base, pair.base), b = cost_of(other, pair.other);
    if (a == b) {
      ++out.ops_equal;
      continue;
    }
    ++out.ops_changed;
    note_difference(differences, OpChange::changed, base, pair.base, a, b);
  }
  for (OpId id = 0; id < kept.size(); ++id) {
    if (kept[id]) continue;
    ++out.ops_removed;
    note_difference(differences, OpChange::removed, base, id, cost_of(base, id), {});
  }
  for (OpId id = 0; id < present.size(); ++id) {
    if (present[id]) continue;
    ++out.ops_added;
    note_difference(differences, OpChange::added, other, id, {}, cost_of(other, id));
  }
  out.ops = std::move(differences).sorted();
}

void compare_times(const ClassTimes& base, const ClassTimes& other, Comparison& out) {
  out.base_classes = base;
  out.other_classes = other;
  for (std::size_t c = 0; c < kTimeClasses; ++c)
    out.waterfall.by_class[c] = out.other_classes.by_class[c] - out.base_classes.by_class[c];
  out.base_time = out.base_classes.total();
  out.other_time = out.other_classes.total();
}

// The places of two named lists side by side: those of base in its order, then what only other has.
template <class Item>
std::vector<std::pair<int, int>> matched(const std::vector<Item>& base, const std::vector<Item>& other) {
  std::vector<std::pair<int, int>> places;
  std::vector<bool> taken(other.size(), false);
  for (std::size_t i = 0; i < base.size(); ++i) {
    int partner = -1;
    for (std::size_t j = 0; j < other.size() && partner < 0; ++j)
      if (!taken[j] && other[j].name == base[i].name) partner = static_cast<int>(j);
    if (partner >= 0) taken[static_cast<std::size_t>(partner)] = true;
    places.emplace_back(static_cast<int>(i), partner);
  }
  for (std::size_t j = 0; j < other.size(); ++j)
    if (!taken[j]) places.emplace_back(-1, static_cast<int>(j));
  return places;
}

void compare_tiers(const Run& base, const Run& other, Comparison& out) {
  for (const auto& [b, o] : matched(base.machine.tiers, other.machine.tiers)) {
    const auto in_base = static_cast<std::size_t>(b), in_other = static_cast<std::size_t>(o);
    const TierResult before = b >= 0 ? base.result.tiers[in_base] : TierResult{};
    const TierResult after = o >= 0 ? other.result.tiers[in_other] : TierResult{};
    TierDifference d;
    const Tier& tier = b >= 0 ? base.machine.tiers[in_base] : other.machine.tiers[in_other];
    d.name = tier.name;
    d.on_device = tier.tier_class == TierClass::device;
    d.base_missing = before.missing;
    d.other_missing = after.missing;
    d.in_base = b >= 0;
    d.in_other = o >= 0;
    d.base_allocated = before.peak_allocated;
    d.other_allocated = after.peak_allocated;
    d.base_reserved = before.peak_reserved;
    d.other_reserved = after.peak_reserved;
    for (std::size_t k = 0; k < kStorageKinds; ++k) d.by_kind[k] = after.peak_by_kind[k] - before.peak_by_kind[k];
    out.tiers.push_back(std::move(d));
  }
}

void compare_links(const Run& base, const Run& other, Comparison& out) {
  for (const auto& [b, o] : matched(base.machine.links, other.machine.links)) {
    const auto in_base = static_cast<std::size_t>(b), in_other = static_cast<std::size_t>(o);
    const LinkResult before = b >= 0 ? base.result.links[in_base] : LinkResult{};
    const LinkResult after = o >= 0 ? other.result.links[in_other] : LinkResult{};
    const std::string& name = b >= 0 ? base.machine.links[in_base].name : other.machine.links[in_other].name;
    out.links.push_back({name, b >= 0, o >= 0, before.bytes, after.bytes, before.busy, after.busy});
  }
}

// As step_windows() has them.
std::uint64_t windows_of(const Run& run) {
  const std::size_t steps = run.trace->steps.size();
  return steps > 0 ? steps : std::max<std::size_t>(1, run.trace->rank_table.size());
}

}  // namespace

std::vector<OpDifference> Differences::sorted() && {
  std::vector<OpDifference> out;
  for (auto& [key, difference] : by_key_) {
    std::tie(difference.change, difference.name, difference.operator_name, difference.kind, difference.phase) = key;
    out.push_back(std::move(difference));
  }
  const auto size = [](const OpDifference& d) {
    return d.difference() < Duration{} ? -d.difference() : d.difference();
  };
  // The map's order (change, name, ...) decides between equals.
  std::stable_sort(out.begin(), out.end(),
                   [&](const OpDifference& a, const OpDifference& b) { return size(a) > size(b); });
  return out;
}

ClassTimes classes_of_steps(const TimeAccounting& accounting) {
  ClassTimes times;
  for (const StepAccounting& step : accounting.steps)
    for (std::size_t c = 0; c < kTimeClasses; ++c) times.by_class[c] += step.times.by_class[c];
  return times;
}

std::vector<LagPoint> sampled(const std::vector<LagPoint>& points) {
  if (points.size() <= kLagPoints) return points;
  std::vector<LagPoint> some;
  for (std::size_t i = 0; i < kLagPoints; ++i) some.push_back(points[i * (points.size() - 1) / (kLagPoints - 1)]);
  return some;
}

std::string_view to_string(OpChange change) {
  switch (change) {
    case OpChange::changed:
      return "changed";
    case OpChange::added:
      return "added";
    case OpChange::removed:
      return "removed";
  }
  return "?";
}

OpCost cost_of(const Run& run, OpId id) {
  const OpRecord& record = run.result.records[id];
  const Op& op = run.trace->ops[id];
  const bool on_device = record.start != kNever;
  const bool sized = op.kind == OpKind::alloc || op.kind == OpKind::free;
  return {on_device ? record.end - record.start : record.host_end - record.host_start,
          sized ? run.trace->storages[op.target].bytes : op.bytes};
}

std::string_view name_of(const Run& run, OpId id) {
  const Op& op = run.trace->ops[id];
  const std::string& given = run.trace->strings[op.name];
  return given.empty() ? to_string(op.kind) : std::string_view(given);
}

void sort_by_time(std::vector<LagPoint>& points) {
  std::stable_sort(points.begin(), points.end(), [](const LagPoint& a, const LagPoint& b) { return a.time < b.time; });
}

std::vector<LagPoint> lag_points(const Run& base, const Run& other, const std::vector<OpPair>& pairs) {
  std::vector<LagPoint> points;
  for (const OpPair& pair : pairs) {
    const Time a = base.result.records[pair.base].end, b = other.result.records[pair.other].end;
    if (a != kNever && b != kNever) points.push_back({a, b - a, pair.base});
  }
  sort_by_time(points);
  return points;
}

Comparison compare_small_parts(const Run& base, const Run& other, const StepFigures& base_figures,
                               const StepFigures& other_figures) {
  Comparison out;
  out.base_trace = base.trace->name;
  out.other_trace = other.trace->name;
  out.base_memory_recorded = base.trace->knowledge.allocations;
  out.other_memory_recorded = other.trace->knowledge.allocations;
  out.base_lives_recorded = !has_derived_lives(base.trace);
  out.other_lives_recorded = !has_derived_lives(other.trace);
  out.base_machine = base.machine.name;
  out.other_machine = other.machine.name;
  out.base_policies = base.policies;
  out.other_policies = other.policies;
  out.base_overrides = base.changes.overrides;
  out.other_overrides = other.changes.overrides;
  out.base_settings = settings_text(base.changes, base.pager, base.allocator, base.allocator_settings);
  out.other_settings = settings_text(other.changes, other.pager, other.allocator, other.allocator_settings);
  out.base_fits = base.result.fits;
  out.other_fits = other.result.fits;
  out.base_steps = windows_of(base);
  out.other_steps = windows_of(other);
  out.same_lineage = same_lineage(base, other);
  out.base_energy_price = base_figures.energy_price;
  out.other_energy_price = other_figures.energy_price;
  compare_times(base_figures.classes, other_figures.classes, out);
  compare_tiers(base, other, out);
  compare_links(base, other, out);
  return out;
}

Comparison compare(const Run& base, const Run& other, const std::vector<OpPair>& pairs, const ClassTimes& base_classes,
                   const ClassTimes& other_classes, const std::vector<LagPoint>& lag) {
  Comparison out = compare_small_parts(base, other, {base_classes, step_energy_price(base)},
                                       {other_classes, step_energy_price(other)});
  compare_ops(base, other, pairs, out);
  out.lag = sampled(lag);
  return out;
}

std::string bound_of(const Run& run, const ClassTimes& times, const std::vector<PathSegment>& path) {
  RunSummary summary;  // what bounds a step rests on times, path and ranks: the rest is left empty
  summary.memory_recorded = false;
  summary.times = times;
  for (const PathSegment& segment : path) summary.path[segment.time_class] += segment.end - segment.begin;
  summary.by_rank = rank_summaries(run);
  for (const OpRecord& record : run.result.records) summary.device_ops += record.start != kNever;
  return verdict_of(run, summary).bound_by;
}

Comparison compare(const Run& base, const Run& other) {
  const std::vector<OpPair> pairs = align(base, other);
  const ClassTimes base_classes = classes_of_steps(account(base)), other_classes = classes_of_steps(account(other));
  Comparison out = compare(base, other, pairs, base_classes, other_classes, lag_points(base, other, pairs));
  out.base_bound_by = bound_of(base, base_classes, critical_path(base));
  out.other_bound_by = bound_of(other, other_classes, critical_path(other));
  return out;
}

}  // namespace memwall
