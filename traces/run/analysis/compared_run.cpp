#include "traces/run/analysis/compared_run.h"

#include <map>
#include <tuple>
#include <utility>

#include "sim/trace/ranks.h"
#include "traces/run/analysis/compare_parts.h"
#include "traces/run/analysis/run_scan.h"
#include "traces/run/run_outline_source.h"

namespace memwall {
namespace {

class Grouping {
 public:
  explicit Grouping(const Run& run)
      : run_(run), text_(text_hashes(run.trace->strings)), latest_(run.trace->strings.size(), kNoGroup) {}

  ComparedRun::ComparedOp op(OpId id) {
    const Op& op = run_.trace->ops[id];
    return {lineage_key(op, text_), run_.result.records[id].end, cost_of(run_, id), group_of(id), op.thread};
  }
  std::vector<ComparedRun::Group> take_groups() { return std::move(groups_); }

 private:
  using Key = std::tuple<StringId, StringId, OpKind, Phase>;
  static constexpr std::uint32_t kNoGroup = 0xffffffff;

  // Mostly the group of the op before that has its name.
  std::uint32_t group_of(OpId id) {
    const Op& op = run_.trace->ops[id];
    const Key key{op.name, op.operator_name, op.kind, op.phase};
    std::uint32_t& latest = latest_[op.name];
    if (latest != kNoGroup && keys_[latest] == key) return latest;
    const auto [found, is_new] = numbers_.try_emplace(key, static_cast<std::uint32_t>(groups_.size()));
    latest = found->second;
    if (!is_new) return latest;
    keys_.push_back(key);
    groups_.push_back({std::string(name_of(run_, id)), run_.trace->strings[op.operator_name], op.kind, op.phase,
                       name_key(op, text_)});
    return latest;
  }

  const Run& run_;
  const std::vector<std::uint64_t> text_;
  std::vector<std::uint32_t> latest_;  // by name: the group found last
  std::map<Key, std::uint32_t> numbers_;
  std::vector<Key> keys_;  // of the groups
  std::vector<ComparedRun::Group> groups_;
};

// Of one rank all that is asked of every op is collected in one pass, and no list of the classes of instants is made.
void work_out_steps(const Run& run, ComparedRun& out) {
  if (rank_count(run.trace) > 1) {
    out.classes = classes_of_steps(account(run));
    out.energy_price = step_energy_price(run);
    out.bound_by = bound_of(run, out.classes, {});
    return;
  }
  PathSurvey survey(run);
  BusyCollector busy(run);
  LoadCollector load(run);
  scan(run, survey, busy, load);
  out.energy_price = step_energy_price(run, load);
  const std::vector<PathSegment> path = critical_path(run, survey);
  out.classes = classes_of_steps(account(run, path, busy.take().front()));
  out.bound_by = bound_of(run, out.classes, path);
}

std::vector<KeyedOps> threads_of(const ComparedRun& run, bool lineage) {
  std::vector<KeyedOps> threads(run.run.trace->threads.size());
  for (OpId id = 0; id < run.ops.size(); ++id) {
    const ComparedRun::ComparedOp& op = run.ops[id];
    threads[op.thread].ops.push_back(id);
    threads[op.thread].keys.push_back(lineage ? op.key : run.groups[op.group].key);
  }
  return threads;
}

// Differences of ops by the number of their group: names are looked up once per group, not per op.
class GroupedDifferences {
 public:
  GroupedDifferences(OpChange change, const std::vector<ComparedRun::Group>& groups)
      : change_(change), groups_(groups), sums_(groups.size()) {}

  void note(std::uint32_t group, const OpCost& base, const OpCost& other) { add(sums_[group], 1, base, other); }
  void add_to(Differences& differences) const {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const OpDifference& sum = sums_[i];
      if (sum.count == 0) continue;
      const ComparedRun::Group& group = groups_[i];
      add(differences.of(change_, group.name, group.operator_name, group.kind, group.phase), sum.count,
          {sum.base_time, sum.base_bytes}, {sum.other_time, sum.other_bytes});
    }
  }

 private:
  static void add(OpDifference& d, std::uint64_t count, const OpCost& base, const OpCost& other) {
    d.count += count;
    d.base_time += base.time;
    d.other_time += other.time;
    d.base_bytes += base.bytes;
    d.other_bytes += other.bytes;
  }

  OpChange change_;
  const std::vector<ComparedRun::Group>& groups_;
  std::vector<OpDifference> sums_;
};

void compare_grouped_ops(const ComparedRun& base, const ComparedRun& other, const std::vector<OpPair>& pairs,
                         Comparison& out) {
  std::vector<bool> kept(base.ops.size(), false), present(other.ops.size(), false);
  GroupedDifferences changed(OpChange::changed, base.groups), removed(OpChange::removed, base.groups),
      added(OpChange::added, other.groups);
  for (const OpPair& pair : pairs) {
    kept[pair.base] = present[pair.other] = true;
    const ComparedRun::ComparedOp &a = base.ops[pair.base], &b = other.ops[pair.other];
    if (a.cost == b.cost)
      ++out.ops_equal;
    else
      changed.note(a.group, a.cost, b.cost);
  }
  for (OpId id = 0; id < kept.size(); ++id)
    if (!kept[id]) removed.note(base.ops[id].group, base.ops[id].cost, {});
  for (OpId id = 0; id < present.size(); ++id)
    if (!present[id]) added.note(other.ops[id].group, {}, other.ops[id].cost);
  out.ops_changed = pairs.size() - out.ops_equal;
  out.ops_removed = base.ops.size() - pairs.size();
  out.ops_added = other.ops.size() - pairs.size();
  Differences differences;
  for (const GroupedDifferences* part : {&changed, &removed, &added}) part->add_to(differences);
  out.ops = std::move(differences).sorted();
}

std::vector<LagPoint> lag_of(const ComparedRun& base, const ComparedRun& other, const std::vector<OpPair>& pairs) {
  std::vector<LagPoint> points;
  for (const OpPair& pair : pairs) {
    const Time a = base.ops[pair.base].end, b = other.ops[pair.other].end;
    if (a != kNever && b != kNever) points.push_back({a, b - a, pair.base});
  }
  sort_by_time(points);
  return points;
}

}  // namespace

ComparedRun compared(const Run& run) {
  ComparedRun out;
  out.run = small_parts(run);
  work_out_steps(run, out);
  Grouping grouping(run);
  out.ops.reserve(run.trace->ops.size());
  for (OpId id = 0; id < run.trace->ops.size(); ++id) out.ops.push_back(grouping.op(id));
  out.groups = grouping.take_groups();
  return out;
}

Comparison compare(const ComparedRun& base, const ComparedRun& other) {
  Comparison out =
      compare_small_parts(base.run, other.run, {base.classes, base.energy_price}, {other.classes, other.energy_price});
  const std::vector<OpPair> pairs =
      align(base.run.trace->threads, threads_of(base, out.same_lineage), other.run.trace->threads,
            threads_of(other, out.same_lineage), out.same_lineage);
  out.base_bound_by = base.bound_by;
  out.other_bound_by = other.bound_by;
  compare_grouped_ops(base, other, pairs, out);
  out.lag = sampled(lag_of(base, other, pairs));
  return out;
}

}  // namespace memwall
