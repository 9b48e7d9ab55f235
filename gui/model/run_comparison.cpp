#include "gui/model/run_comparison.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "gui/model/load_progress.h"

namespace memwall::gui {
namespace {

bool less_lag(const LagPoint& a, const LagPoint& b) { return a.lag < b.lag; }

std::vector<RunComparison::LagExtremes> blocks_of(const std::vector<LagPoint>& lag) {
  std::vector<RunComparison::LagExtremes> blocks;
  for (std::size_t first = 0; first < lag.size(); first += RunComparison::kLagBlock) {
    const auto begin = lag.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = lag.begin() + static_cast<std::ptrdiff_t>(std::min(first + RunComparison::kLagBlock, lag.size()));
    const auto [lowest, highest] = std::minmax_element(begin, end, less_lag);
    blocks.push_back({static_cast<std::size_t>(lowest - lag.begin()), static_cast<std::size_t>(highest - lag.begin())});
  }
  return blocks;
}

// Of the points [first, last). REQUIRES: first < last.
RunComparison::LagExtremes extremes(const RunComparison& c, std::size_t first, std::size_t last) {
  constexpr std::size_t kBlock = RunComparison::kLagBlock;
  RunComparison::LagExtremes found{first, first};
  const auto note = [&](std::size_t low, std::size_t high) {
    if (c.lag[low].lag < c.lag[found.lowest].lag) found.lowest = low;
    if (c.lag[high].lag > c.lag[found.highest].lag) found.highest = high;
  };
  for (std::size_t i = first; i < last;) {
    if (i % kBlock == 0 && i + kBlock <= last) {
      note(c.lag_blocks[i / kBlock].lowest, c.lag_blocks[i / kBlock].highest);
      i += kBlock;
    } else {
      note(i, i);
      ++i;
    }
  }
  return found;
}

// The index of the first point at or after `time`, or after it.
std::size_t first_at(const std::vector<LagPoint>& lag, std::size_t from, Time time) {
  const auto found = std::lower_bound(lag.begin() + static_cast<std::ptrdiff_t>(from), lag.end(), time,
                                      [](const LagPoint& point, Time t) { return point.time < t; });
  return static_cast<std::size_t>(found - lag.begin());
}
std::size_t first_after(const std::vector<LagPoint>& lag, Time time) {
  const auto found =
      std::upper_bound(lag.begin(), lag.end(), time, [](Time t, const LagPoint& point) { return t < point.time; });
  return static_cast<std::size_t>(found - lag.begin());
}

Duration magnitude(Duration d) { return d < Duration{} ? -d : d; }

bool named(const OpDifference& row, const Run& run, OpId id) {
  const Op& op = run.trace->ops[id];
  return op.kind == row.kind && op.phase == row.phase && run.trace->strings[op.operator_name] == row.operator_name &&
         name_of(run, id) == row.name;
}

// The largest seen so far.
class Largest {
 public:
  Largest(const OpDifference& row, const Run& run, std::uint8_t number) : row_(row), run_(run), number_(number) {}

  // `id`: of the run; the costs on both sides.
  void note(OpId id, const OpCost& base, const OpCost& other) {
    const std::tuple size{magnitude(other.time - base.time),
                          std::max(other.bytes, base.bytes) - std::min(other.bytes, base.bytes)};
    if ((found_ != kNoOp && size <= size_) || !named(row_, run_, id)) return;
    size_ = size;
    found_ = id;
  }

  OpRef found() const {
    const bool known = found_ != kNoOp;
    return {number_, found_, known && run_.result.records[found_].start == kNever};
  }

 private:
  const OpDifference& row_;
  const Run& run_;
  std::uint8_t number_;
  OpId found_ = kNoOp;
  std::tuple<Duration, Bytes> size_{};
};

// Ops of the run that stand in no pair.
template <class Visit>
void for_each_unpaired(const std::vector<OpPair>& pairs, OpId OpPair::*side, std::size_t ops, Visit visit) {
  auto pair = pairs.begin();
  for (OpId id = 0; id < ops; ++id) {
    while (pair != pairs.end() && (*pair).*side < id) ++pair;
    if (pair == pairs.end() || (*pair).*side != id) visit(id);
  }
}

}  // namespace

std::optional<OpRef> RunComparison::counterpart(OpRef op) const {
  const bool in_base = op.run == 0;
  OpId OpPair::*const side = in_base ? &OpPair::base : &OpPair::other;
  const std::vector<OpPair>& sorted = in_base ? pairs : by_other;
  const auto found = std::lower_bound(sorted.begin(), sorted.end(), op.op,
                                      [side](const OpPair& pair, OpId id) { return pair.*side < id; });
  if (found == sorted.end() || (*found).*side != op.op) return std::nullopt;
  return OpRef{static_cast<std::uint8_t>(in_base ? 1 : 0), in_base ? found->other : found->base, op.call};
}

Duration RunComparison::shift_to(OpRef op, const RunAnalysis& base, const RunAnalysis& other) const {
  const std::optional<OpRef> there = counterpart(op);
  if (!there) return {};
  const OpRecord& first = base.run->result.records[op.run == 0 ? op.op : there->op];
  const OpRecord& second = other.run->result.records[op.run == 0 ? there->op : op.op];
  const bool by_call = op.call || first.start == kNever || second.start == kNever;
  const Time a = by_call ? first.host_start : first.start, b = by_call ? second.host_start : second.start;
  return a == kNever || b == kNever ? Duration{} : a - b;
}

std::vector<LagPoint> RunComparison::lag_within(TimeRange range, std::size_t most) const {
  std::size_t first = first_at(lag, 0, range.begin);
  const std::size_t last = first_after(lag, range.end);
  const auto iterator = [this](std::size_t i) { return lag.begin() + static_cast<std::ptrdiff_t>(i); };
  if (last - first <= most) return {iterator(first), iterator(last)};
  std::vector<LagPoint> kept;
  const std::size_t pieces = most / 4;
  for (std::size_t piece = 1; piece <= pieces && first < last; ++piece) {
    const double share = static_cast<double>(piece) / static_cast<double>(pieces);
    const Time until =
        range.begin + Duration(static_cast<std::int64_t>(static_cast<double>(range.length().count()) * share));
    const std::size_t next = piece == pieces ? last : std::min(last, first_at(lag, first, until));
    if (next == first) continue;
    const LagExtremes found = extremes(*this, first, next);
    std::array<std::size_t, 4> points{first, found.lowest, found.highest, next - 1};
    std::sort(points.begin(), points.end());
    for (std::size_t i = 0; i < points.size(); ++i)
      if (i == 0 || points[i] != points[i - 1]) kept.push_back(lag[points[i]]);
    first = next;
  }
  return kept;
}

std::optional<LagPoint> RunComparison::last_before(Time time) const {
  const std::size_t next = first_at(lag, 0, time);
  return next == 0 ? std::nullopt : std::optional(lag[next - 1]);
}

std::optional<LagPoint> RunComparison::last_until(Time time) const {
  const std::size_t next = first_after(lag, time);
  return next == 0 ? std::nullopt : std::optional(lag[next - 1]);
}

std::optional<LagPoint> RunComparison::first_behind(Time time) const {
  const std::size_t next = first_after(lag, time);
  return next == lag.size() ? std::nullopt : std::optional(lag[next]);
}

std::shared_ptr<const RunComparison> compare_runs(const RunAnalysis& base, const RunAnalysis& other,
                                                  const LoadProgress& progress) {
  auto made = std::make_shared<RunComparison>();
  made->pairs = align(*base.run, *other.run);
  reach(progress, 0.4);
  made->by_other = made->pairs;
  std::sort(made->by_other.begin(), made->by_other.end(),
            [](const OpPair& a, const OpPair& b) { return a.other < b.other; });
  made->lag = lag_points(*base.run, *other.run, made->pairs);
  made->lag_blocks = blocks_of(made->lag);
  reach(progress, 0.6);
  made->comparison = compare(*base.run, *other.run, made->pairs, base.summary.times, other.summary.times, made->lag);
  made->comparison.base_bound_by = base.summary.verdict.bound_by;
  made->comparison.other_bound_by = other.summary.verdict.bound_by;
  reach(progress, 1);
  return made;
}

OpRef largest_example(const RunComparison& comparison, std::size_t i, const RunAnalysis& base,
                      const RunAnalysis& other) {
  const OpDifference& row = comparison.comparison.ops[i];
  const bool added = row.change == OpChange::added;
  const Run& run = added ? *other.run : *base.run;
  Largest largest(row, run, added ? 1 : 0);
  const std::size_t ops = run.trace->ops.size();
  if (row.change == OpChange::changed)
    for (const OpPair& pair : comparison.pairs) {
      const OpCost before = cost_of(run, pair.base), after = cost_of(*other.run, pair.other);
      if (before != after) largest.note(pair.base, before, after);
    }
  else if (added)
    for_each_unpaired(comparison.by_other, &OpPair::other, ops,
                      [&](OpId id) { largest.note(id, {}, cost_of(run, id)); });
  else
    for_each_unpaired(comparison.pairs, &OpPair::base, ops, [&](OpId id) { largest.note(id, cost_of(run, id), {}); });
  return largest.found();
}

}  // namespace memwall::gui
