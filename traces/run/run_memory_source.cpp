// The reference: every answer by a loop over a run in memory.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/error.h"
#include "traces/run/run_outline_source.h"
#include "traces/run/run_source.h"
#include "traces/run/series_levels.h"

namespace memwall {
namespace {

constexpr std::size_t kReportEvery = std::size_t{1} << 20;

template <class T>
std::size_t bytes_of_list(const std::vector<T>& list) {
  return list.capacity() * sizeof(T);
}
template <class T>
std::size_t bytes_of_list(const std::vector<std::vector<T>>& lists) {
  std::size_t bytes = lists.capacity() * sizeof(std::vector<T>);
  for (const auto& list : lists) bytes += bytes_of_list(list);
  return bytes;
}

template <class Point>
class SeriesInMemory {
 public:
  using High = decltype(high_of(Point{}));
  SeriesInMemory(const std::vector<std::vector<Point>>& series, Time end) : series_(series), end_(end) {
    for (const auto& points : series) levels_.push_back(series_levels(points, end));
  }
  std::vector<High> select(std::size_t which, Time begin, Time end, std::size_t most) const {
    if (which >= series_.size()) return {};
    const std::vector<Point>& points = series_[which];
    const auto read = [&](std::size_t level, std::uint64_t first, std::uint64_t count) {
      std::vector<High> rows;
      for (std::uint64_t i = first; i < first + count; ++i)
        rows.push_back(level == 0 ? high_of(points[i]) : levels_[which][level - 1][i]);
      return rows;
    };
    return selected(SeriesRows<High>{points.size(), end_, read}, begin, end, most);
  }
  std::size_t bytes() const { return bytes_of_list(levels_); }

 private:
  const std::vector<std::vector<Point>>& series_;
  Time end_;
  std::vector<std::vector<std::vector<High>>> levels_;  // per series, from level 1
};

class RunInMemory final : public RunSource {
 public:
  explicit RunInMemory(std::shared_ptr<const Run> run)
      : run_(std::move(run)),
        outline_(outline_of(*run_, cells_)),
        engines_(engine_lanes_of(outline_)),
        memory_(run_->memory, run_->result.end),
        rates_(run_->link_rates, run_->result.end) {}

  const RunOutline& outline() const override { return outline_; }

  std::vector<LaneCell> cells(std::uint32_t lane, std::uint8_t level, std::uint64_t first,
                              std::uint64_t last) const override {
    if (lane >= cells_.size() || level >= cells_[lane].size()) return {};
    std::vector<LaneCell> out;
    for (const LaneCell& cell : cells_[lane][level])
      if (cell.bucket >= first && cell.bucket < last) out.push_back(cell);
    return out;
  }

  SpanBlock spans(std::uint32_t number) const override {
    SpanBlock block;
    block.first = number * kSpanBlock;
    const std::size_t end = std::min(run_->trace->ops.size(), std::size_t{block.first} + kSpanBlock);
    reserve_spans(block, end - std::min<std::size_t>(end, block.first));
    for (std::size_t id = block.first; id < end; ++id)
      append_span(block, run_->trace->ops[id], run_->result.records[id], engines_);
    return block;
  }

  std::vector<MoveRecord> moves(std::uint64_t first, std::uint64_t count) const override {
    const auto& moves = run_->result.moves;
    const std::uint64_t from = std::min<std::uint64_t>(first, moves.size());
    const std::uint64_t to = from + std::min<std::uint64_t>(count, moves.size() - from);
    return {moves.begin() + static_cast<std::ptrdiff_t>(from), moves.begin() + static_cast<std::ptrdiff_t>(to)};
  }

  std::vector<MemoryHigh> memory(std::uint32_t tier, Time begin, Time end, std::size_t most) const override {
    return memory_.select(tier, begin, end, most);
  }
  std::vector<RateHigh> link_rates(std::uint32_t link, Time begin, Time end, std::size_t most) const override {
    return rates_.select(link, begin, end, most);
  }

  StorageColumns storages(const LoadProgress& progress) const override {
    report(progress, 0);
    StorageColumns columns;
    for (const Storage& storage : run_->trace->storages) {
      columns.bytes.push_back(storage.bytes);
      columns.kind.push_back(storage.kind);
      columns.label.push_back(storage.label);
      columns.preexisting.push_back(storage.preexisting);
    }
    return columns;
  }
  std::vector<Residency> residency(const LoadProgress& progress) const override {
    report(progress, 0);
    return run_->residency;
  }
  std::vector<std::uint32_t> at_peak(std::uint32_t tier) const override {
    return tier < run_->at_peak.size() ? run_->at_peak[tier] : std::vector<std::uint32_t>{};
  }

  OpDetail op(OpId id) const override {
    const Trace& trace = run_->trace;
    if (id >= trace.ops.size()) throw InputError(fmt::format("Op {} of a run of {} ops.", id, trace.ops.size()));
    const Op& op = trace.ops[id];
    const auto uses = trace.uses_of(op);
    return {id,
            op,
            run_->result.records[id],
            {uses.begin(), uses.end()},
            trace.strings[op.name],
            trace.strings[op.operator_name],
            trace.strings[op.module]};
  }
  std::string text(StringId id) const override {
    const StringTable& strings = run_->trace->strings;
    if (id >= strings.size()) throw InputError(fmt::format("Text {} of a run of {} texts.", id, strings.size()));
    return strings[id];
  }
  std::vector<std::string> texts(const LoadProgress& progress) const override {
    report(progress, 0);
    std::vector<std::string> out;
    for (StringId id = 0; id < run_->trace->strings.size(); ++id) out.push_back(run_->trace->strings[id]);
    return out;
  }

  std::vector<OpId> ops_with(const std::vector<bool>& wanted, std::size_t most,
                             const LoadProgress& progress) const override {
    const auto is_wanted = [&](StringId id) { return id < wanted.size() && wanted[id]; };
    return ops_where(
        [&](const Op& op, const OpRecord&) {
          return is_wanted(op.name) || is_wanted(op.operator_name) || is_wanted(op.module);
        },
        most, progress);
  }
  std::vector<OpId> followers(OpId id, std::size_t most) const override {
    return ops_where(
        [id](const Op&, const OpRecord& record) {
          return record.host_cause == id || record.device_cause == id || record.host_end_cause == id;
        },
        id == kNoOp ? 0 : most, {});
  }
  std::vector<StorageUse> uses_of(StorageId storage, std::size_t most) const override {
    std::vector<StorageUse> out;
    for (OpId id = 0; id < run_->trace->ops.size(); ++id)
      for (const Use& use : run_->trace->uses_of(run_->trace->ops[id])) {
        if (use.storage != storage) continue;
        if (out.size() >= most) return out;
        out.push_back({id, use.version, use.access});
      }
    return out;
  }

  std::shared_ptr<const Run> whole(const LoadProgress& progress) const override {
    report(progress, 1);
    return run_;
  }

  std::size_t resident_bytes() const override {
    const Trace& trace = run_->trace;
    std::size_t texts = 0;
    for (StringId id = 0; id < trace.strings.size(); ++id) texts += trace.strings[id].size() + 64;
    return sizeof(*this) + texts + bytes_of_list(trace.ops) + bytes_of_list(trace.uses) +
           bytes_of_list(trace.storages) + bytes_of_list(run_->result.records) + bytes_of_list(run_->result.moves) +
           bytes_of_list(run_->memory) + bytes_of_list(run_->link_rates) + bytes_of_list(run_->residency) +
           bytes_of_list(run_->at_peak) + bytes_of_list(cells_) + bytes_of_list(outline_.blocks) + memory_.bytes() +
           rates_.bytes();
  }

 private:
  using Cells = std::vector<std::vector<std::vector<LaneCell>>>;

  static RunOutline outline_of(const Run& run, Cells& cells) {
    RunIndex index = build_run_index(run);
    cells = std::move(index.cells);
    RunOutline outline;
    outline.run = small_parts(run);
    outline.ops = run.trace->ops.size();
    outline.storages = run.trace->storages.size();
    outline.residencies = run.residency.size();
    outline.uses = run.trace->uses.size();
    outline.moves = run.result.moves.size();
    outline.strings = run.trace->strings.size();
    outline.steps = step_windows(run);
    outline.lanes = std::move(index.lanes);
    outline.blocks = std::move(index.blocks);
    return outline;
  }

  template <class Predicate>
  std::vector<OpId> ops_where(Predicate predicate, std::size_t most, const LoadProgress& progress) const {
    const std::size_t count = run_->trace->ops.size();
    std::vector<OpId> out;
    for (OpId id = 0; id < count && out.size() < most; ++id) {
      if (id % kReportEvery == 0) report(progress, static_cast<double>(id) / static_cast<double>(count));
      if (predicate(run_->trace->ops[id], run_->result.records[id])) out.push_back(id);
    }
    return out;
  }

  std::shared_ptr<const Run> run_;
  Cells cells_;
  RunOutline outline_;
  EngineLanes engines_;
  SeriesInMemory<MemoryPoint> memory_;
  SeriesInMemory<RatePoint> rates_;
};

}  // namespace

std::unique_ptr<RunSource> source_of(std::shared_ptr<const Run> run) {
  return std::make_unique<RunInMemory>(std::move(run));
}

}  // namespace memwall
