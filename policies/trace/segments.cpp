#include "policies/trace/segments.h"

#include <algorithm>
#include <set>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/biconnected_components.hpp>

#include "policies/trace/module_blocks.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/parameter_gathers.h"

namespace memwall {
namespace {

bool computes(const Op& op) {
  return op.phase == Phase::forward && (runs_on_device(op.kind) || (op.kind == OpKind::host_work && op.use_count > 0));
}

// Runs of consecutive forward ops that have the same non-empty label.
template <typename Label>
std::vector<RecomputeUnit> runs_of(const Trace& trace, const Pass& pass, Label label) {
  std::vector<RecomputeUnit> units;
  std::string previous;
  for (const OpId id : forward_ops(trace, pass)) {
    std::string name = label(trace.ops[id]);
    if (!name.empty()) {
      if (name != previous) units.push_back({name, {}});
      units.back().ops.push_back(id);
    }
    previous = std::move(name);
  }
  return units;
}

std::vector<bool> articulation_ops(const Trace& trace, const Dataflow& flow, const Pass& pass,
                                   const std::vector<OpId>& ops) {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS> graph(ops.size());
  const auto index = [&](OpId id) -> std::size_t {
    return static_cast<std::size_t>(std::lower_bound(ops.begin(), ops.end(), id) - ops.begin());
  };
  for (std::size_t i = 0; i < ops.size(); ++i)
    for (const Use& use : trace.uses_of(trace.ops[ops[i]])) {
      if (use.access == Access::write || use.version == 0) continue;
      const OpId writer = flow.writer(use.storage, use.version);
      const std::size_t from = index(writer);
      if (from < i && ops[from] == writer && is_forward_intermediate(trace, flow, pass, use.storage))
        boost::add_edge(from, i, graph);
    }
  std::vector<std::size_t> points;
  boost::articulation_points(graph, std::back_inserter(points));
  std::vector<bool> is_point(ops.size(), false);
  for (const std::size_t point : points) is_point[point] = true;
  return is_point;
}

// For each op: may the pass be cut behind it?
std::vector<bool> cuts(const Trace& trace, const Dataflow& flow, const Pass& pass, const std::vector<OpId>& ops) {
  std::vector<bool> possible = articulation_ops(trace, flow, pass, ops);
  if (!possible.empty()) possible.back() = true;
  // Every other content must not cross: forbid the cuts between it and its last forward reader, save
  // the one right behind its maker. A storage that is written again may not cross at all.
  std::vector<int> crossing(ops.size() + 1, 0);
  const auto index = [&](OpId id) {
    return static_cast<std::size_t>(std::lower_bound(ops.begin(), ops.end(), id) - ops.begin());
  };
  std::set<StorageId> seen;
  for (std::size_t i = 0; i < ops.size(); ++i)
    for (const Use& use : trace.uses_of(trace.ops[ops[i]])) {
      if (use.access != Access::write || !seen.insert(use.storage).second) continue;
      if (!is_forward_intermediate(trace, flow, pass, use.storage)) continue;
      std::size_t last = i, last_write = i;
      for (const Touch& touch : flow.touches(use.storage)) {
        if (touch.op >= pass.backward) break;
        last = std::min(index(touch.op), ops.size() - 1);
        if (touch.writes) last_write = last;
      }
      ++crossing[i];
      --crossing[last_write];
      if (last > last_write + 1) ++crossing[last_write + 1], --crossing[last];
    }
  int open = 0;
  for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
    open += crossing[i];
    if (open > 0) possible[i] = false;
  }
  return possible;
}

// Does the segment hold something for backward that no later forward op reads?
bool has_something_to_drop(const Trace& trace, const Dataflow& flow, const Pass& pass, const std::vector<OpId>& ops) {
  const auto inside = [&](OpId id) { return std::binary_search(ops.begin(), ops.end(), id); };
  for (const OpId id : ops)
    for (const Use& use : trace.uses_of(trace.ops[id])) {
      if (use.access != Access::write || !is_saved_activation(trace, flow, pass, use.storage)) continue;
      bool own = true;
      for (const Touch& touch : flow.touches(use.storage)) own = own && (touch.op >= pass.backward || inside(touch.op));
      if (own) return true;
    }
  return false;
}

// For each op (an index into `ops`): the latest first write, one more than its index, of the saved
// storages whose last forward use it is; 0 = none. Such a storage is a segment's own if the segment
// begins no later than that write.
std::vector<std::size_t> saved_storages_by_end(const Trace& trace, const Dataflow& flow, const Pass& pass,
                                               const std::vector<OpId>& ops) {
  std::vector<std::size_t> latest(ops.size(), 0);
  for (std::size_t i = 0; i < ops.size(); ++i)
    for (const Use& use : trace.uses_of(trace.ops[ops[i]])) {
      if (use.access != Access::write || use.version != 1 || !is_saved_activation(trace, flow, pass, use.storage))
        continue;
      OpId last = ops[i];
      bool all_compute = true;
      for (const Touch& touch : flow.touches(use.storage)) {
        if (touch.op >= pass.backward) break;
        last = touch.op;
        all_compute = all_compute && std::binary_search(ops.begin(), ops.end(), touch.op);
      }
      const auto end = static_cast<std::size_t>(std::lower_bound(ops.begin(), ops.end(), last) - ops.begin());
      if (all_compute) latest[end] = std::max(latest[end], i + 1);
    }
  return latest;
}

struct InPlaceOp {
  OpId op = kNoOp, maker = kNoOp;  // maker: of what was there before, not of the unit
};

// The op of the unit that works in place on what was made first of all.
InPlaceOp in_place_on_others(const Trace& trace, const Dataflow& flow, const RecomputeUnit& unit) {
  InPlaceOp found;
  for (const OpId id : unit.ops)
    for (const Use& use : trace.uses_of(trace.ops[id])) {
      if (use.access != Access::write || use.version < 2 || trace.storages[use.storage].preexisting) continue;
      const OpId maker = flow.writer(use.storage, 1);
      if (maker < found.maker && !std::binary_search(unit.ops.begin(), unit.ops.end(), maker)) found = {id, maker};
    }
  return found;
}

// The units from `first` to `last` with all ops between them. `ops`: of the pass.
RecomputeUnit span_of(const std::vector<OpId>& ops, const RecomputeUnit& first, const RecomputeUnit& last) {
  RecomputeUnit unit;
  unit.name = &first == &last ? first.name : first.name + ".." + last.name;
  const auto begin = std::lower_bound(ops.begin(), ops.end(), first.ops.front());
  const auto end = std::upper_bound(ops.begin(), ops.end(), last.ops.back());
  unit.ops.assign(begin, end);
  return unit;
}

// Where the trace says what autograd keeps, the first op that it keeps anything for: what comes before makes the step's
// data, and is no part of a network that could run it again. Else the first op.
std::size_t network_begin(const Trace& trace, const std::vector<OpId>& ops) {
  const auto first = std::ranges::find_if(
      ops, [&](OpId id) { return std::ranges::any_of(trace.uses_of(trace.ops[id]), &Use::saved); });
  return first == ops.end() ? 0 : static_cast<std::size_t>(first - ops.begin());
}

std::string segment_name(const Trace& trace, const std::vector<OpId>& ops, std::size_t number) {
  const auto name = [&](OpId id) { return operator_of(trace, trace.ops[id]); };
  return "segment " + std::to_string(number) + " (" + name(ops.front()) + " to " + name(ops.back()) + ")";
}

}  // namespace

std::vector<OpId> forward_ops(const Trace& trace, const Pass& pass) {
  std::vector<OpId> ops;
  for (OpId id = pass.begin; id < pass.backward; ++id)
    if (computes(trace.ops[id]) && !gathers_parameters(trace, trace.ops[id]) &&
        !serves_parameters(trace, trace.ops[id]))
      ops.push_back(id);
  return ops;
}

bool matches(const std::string& pattern, const std::string& text) {
  // Greedy with one step back to the latest '*': linear for one star, quadratic at worst.
  std::size_t p = 0, t = 0, star = std::string::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<RecomputeUnit> module_units(const Trace& trace, const Pass& pass,
                                        const std::vector<std::string>& patterns) {
  return runs_of(trace, pass, [&](const Op& op) -> std::string {
    const std::string& path = trace.strings[op.module];
    if (path.empty()) return "";
    for (const std::string& part : leading_parts(path))
      for (const std::string& pattern : patterns)
        if (matches(pattern, part) &&
            std::count(part.begin(), part.end(), '.') == std::count(pattern.begin(), pattern.end(), '.'))
          return part;
    return "";
  });
}

std::vector<RecomputeUnit> block_units(const Trace& trace, const Dataflow& flow, const Pass& pass) {
  std::set<StringId> known;
  std::set<std::string> paths;
  for (const OpId id : forward_ops(trace, pass))
    if (known.insert(trace.ops[id].module).second) paths.insert(trace.strings[trace.ops[id].module]);
  const ModuleBlocks blocks(paths, BlockRule::numbered);
  std::vector<RecomputeUnit> units =
      runs_of(trace, pass, [&](const Op& op) { return blocks.of(trace.strings[op.module]); });
  const auto gainful = std::count_if(units.begin(), units.end(), [&](const RecomputeUnit& unit) {
    return has_something_to_drop(trace, flow, pass, unit.ops);
  });
  if (2 * gainful < std::ssize(units)) units.clear();
  return units;
}

std::vector<RecomputeUnit> segment_units(const Trace& trace, const Dataflow& flow, const Pass& pass) {
  const std::vector<OpId> ops = forward_ops(trace, pass);
  const std::vector<bool> possible = cuts(trace, flow, pass, ops);
  const std::vector<std::size_t> saved = saved_storages_by_end(trace, flow, pass, ops);
  std::vector<RecomputeUnit> units;
  std::size_t begin = network_begin(trace, ops), latest = 0;
  for (std::size_t i = begin; i < ops.size(); ++i) {
    latest = std::max(latest, saved[i]);
    if (!possible[i] || latest <= begin) continue;  // not here, or nothing of its own yet
    const std::vector<OpId> segment(ops.begin() + static_cast<std::ptrdiff_t>(begin),
                                    ops.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    units.push_back({segment_name(trace, segment, units.size()), segment});
    begin = i + 1;
  }
  return units;  // what is left has nothing to drop
}

bool matches_operator(const std::string& pattern, const std::string& name, const std::string& plain) {
  if (matches(pattern, name) || matches(pattern, plain)) return true;
  const std::string plain_pattern = plain_operator_name(pattern);
  return plain_pattern != pattern && !plain_pattern.empty() && matches(plain_pattern, plain);
}

std::vector<RecomputeUnit> operator_units(const Trace& trace, const Pass& pass,
                                          const std::vector<std::string>& patterns) {
  std::vector<RecomputeUnit> units;
  bool open = false;
  for (const OpId id : forward_ops(trace, pass)) {
    const Op& op = trace.ops[id];
    const std::string& name = operator_of(trace, op);
    const std::string plain = plain_operator_name(name);
    const bool hit = std::any_of(patterns.begin(), patterns.end(),
                                 [&](const std::string& pattern) { return matches_operator(pattern, name, plain); });
    if (hit && !open) {
      const std::string where = op.module != 0 ? " in " + trace.strings[op.module] : "";
      units.push_back({plain + where + " (op " + std::to_string(id) + ")", {}});
    }
    if (hit) units.back().ops.push_back(id);
    open = hit;
  }
  return units;
}

std::vector<RecomputeUnit> joined_in_place(const Trace& trace, const Dataflow& flow, const Pass& pass,
                                           const std::vector<RecomputeUnit>& units) {
  const std::vector<OpId> ops = forward_ops(trace, pass);
  std::vector<RecomputeUnit> joined;
  for (const RecomputeUnit& unit : units) {
    joined.push_back(unit);
    while (joined.size() > 1) {
      const InPlaceOp found = in_place_on_others(trace, flow, joined.back());
      std::size_t first = joined.size() - 1;
      while (first > 0 && !joined[first - 1].ops.empty() && joined[first - 1].ops.back() >= found.maker) --first;
      if (found.op == kNoOp || !std::binary_search(joined[first].ops.begin(), joined[first].ops.end(), found.maker))
        break;
      RecomputeUnit whole = span_of(ops, joined[first], joined.back());
      whole.joined = operator_of(trace, trace.ops[found.op]) + " of " + joined.back().name +
                     " works in place on what " + joined[first].name + " makes";
      joined.resize(first);
      joined.push_back(std::move(whole));
    }
  }
  return joined;
}

std::vector<RecomputeUnit> grouped(const Trace& trace, const Pass& pass, const std::vector<RecomputeUnit>& units,
                                   std::size_t size) {
  if (size == 1) return units;
  const std::vector<OpId> ops = forward_ops(trace, pass);
  std::vector<RecomputeUnit> groups;
  for (std::size_t i = 0; i < units.size(); i += size)
    groups.push_back(span_of(ops, units[i], units[std::min(i + size, units.size()) - 1]));
  return groups;
}

}  // namespace memwall
