#include "traces/run/run_index.h"

#include <algorithm>
#include <map>
#include <utility>

#include "traces/run/engine_lanes.h"
#include "traces/run/lane_cells.h"
#include "traces/run/lane_names.h"

namespace memwall {
namespace {

class IndexBuilder {
 public:
  explicit IndexBuilder(const Run& run) : run_(run), engines_(run.trace, run.machine) {}

  RunIndex build() {
    name_lanes();
    find_blocks();
    build_cells();
    RunIndex index;
    for (LaneInProgress& lane : lanes_) {
      index.lanes.push_back(std::move(lane.lane));
      index.cells.push_back(std::move(lane.cells));
      index.blocks.push_back(std::move(lane.blocks));
    }
    return index;
  }

 private:
  struct LaneInProgress {
    RunLane lane;
    std::vector<LaneBlock> blocks;
    std::vector<std::vector<LaneCell>> cells;
    Time last{};
    bool in_order = true;  // begins ascend
  };

  void name_lanes() {
    const Trace& trace = run_.trace;
    for (std::size_t i = 0; i < trace.threads.size(); ++i)
      add_lane(RunLaneKind::thread, i, trace.threads[i].rank, thread_lane_name(trace, trace.threads[i]));
    const bool several = has_several_devices(trace);
    for (std::size_t i = 0; i < trace.streams.size(); ++i)
      add_lane(RunLaneKind::stream, i, trace.streams[i].rank, stream_lane_name(trace, trace.streams[i], several));
    std::vector<RunLane> engines = engine_lanes(run_, lanes_.size());
    for (RunLane& lane : engines) {
      engines_.set_lane(lane.engine, lane.device, static_cast<std::uint8_t>(lanes_.size()));
      lanes_.push_back({std::move(lane), {}, {}});
    }
    for (const MoveRecord& move : run_.result.moves) pagers_[{move.from, move.to}] = 0;
    std::size_t index = 0;
    for (auto& [tiers, lane] : pagers_) {
      lane = lanes_.size();
      add_lane(RunLaneKind::pager, index++, rank_of_tiers(tiers.first, tiers.second),
               pager_lane_name(run_.machine, tiers.first, tiers.second));
      lanes_.back().lane.from = tiers.first;
      lanes_.back().lane.to = tiers.second;
    }
  }

  // Whose memory data leave or come to: an index into Trace::rank_table.
  std::uint16_t rank_of_tiers(std::uint16_t from, std::uint16_t to) const {
    const RankMachine& machine = run_.machine;
    const std::uint16_t device = machine.tiers[from].tier_class == TierClass::device ? from : to;
    for (std::uint16_t rank = 0; rank < machine.views.size(); ++rank) {
      const std::vector<std::uint16_t>& own = machine.views[rank].tier;
      if (std::find(own.begin(), own.end(), device) != own.end()) return rank;
    }
    return 0;
  }

  void add_lane(RunLaneKind kind, std::size_t index, std::uint16_t rank, std::string name) {
    RunLane lane;
    lane.kind = kind;
    lane.index = static_cast<std::uint16_t>(index);
    lane.rank = rank;
    lane.name = std::move(name);
    lanes_.push_back({std::move(lane), {}, {}});
  }

  // visit(lane, number of its op or move, span): ops in their order, then moves.
  template <class Visit>
  void for_each_span(Visit&& visit) const {
    const std::size_t threads = run_.trace->threads.size();
    for (OpId id = 0; id < run_.trace->ops.size(); ++id) {
      const Op& op = run_.trace->ops[id];
      const OpRecord& record = run_.result.records[id];
      if (has_call(op, record))
        visit(op.thread, id,
              LaneSpan{record.host_start, record.host_end, call_category(op.kind, op.wait_for), WaitReason::none});
      if (!has_work(op, record)) continue;
      LaneSpan span{record.start, record.end, work_category(op.kind, op.phase), record.device_reason};
      visit(threads + op.stream, id, span);
      const std::uint8_t engine = engines_.lane_of(op);
      if (engine == kNoLane) continue;
      span.reason = WaitReason::none;
      visit(engine, id, span);
    }
    for (std::uint32_t i = 0; i < run_.result.moves.size(); ++i) {
      const MoveRecord& move = run_.result.moves[i];
      visit(pagers_.at({move.from, move.to}), i, LaneSpan{move.start, move.end, SpanCategory::copy, WaitReason::none});
    }
  }

  void find_blocks() {
    for_each_span([&](std::size_t number, std::uint32_t id, const LaneSpan& span) {
      LaneInProgress& lane = lanes_[number];
      if (lane.blocks.empty() || lane.blocks.back().block != id / kSpanBlock)
        lane.blocks.push_back({id / kSpanBlock, span.begin, span.end, 0});
      LaneBlock& block = lane.blocks.back();
      block.begin = std::min(block.begin, span.begin);
      block.end = std::max(block.end, span.end);
      ++block.spans;
      ++lane.lane.spans;
      lane.in_order = lane.in_order && lane.last <= span.begin;
      lane.last = span.begin;
    });
  }

  // Lanes whose spans stand in the order of time, which most do, need not be copied and sorted.
  void build_cells() {
    std::vector<LaneCellBuilder> builders;
    std::vector<std::vector<LaneSpan>> unsorted(lanes_.size());
    for (const LaneInProgress& lane : lanes_) builders.emplace_back(lane.lane.spans, run_.result.end);
    for_each_span([&](std::size_t number, std::uint32_t, const LaneSpan& span) {
      if (builders[number].levels() == 0) return;
      if (lanes_[number].in_order)
        builders[number].add(span);
      else
        unsorted[number].push_back(span);
    });
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      std::stable_sort(unsorted[i].begin(), unsorted[i].end(),
                       [](const LaneSpan& a, const LaneSpan& b) { return a.begin < b.begin; });
      for (const LaneSpan& span : unsorted[i]) builders[i].add(span);
      unsorted[i] = {};
      lanes_[i].lane.base_log2 = builders[i].base_log2();
      lanes_[i].lane.levels = builders[i].levels();
      lanes_[i].cells = builders[i].finish();
    }
  }

  const Run& run_;
  EngineLanes engines_;
  std::vector<LaneInProgress> lanes_;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::size_t> pagers_;  // lane by tiers
};

}  // namespace

std::string_view to_string(RunLaneKind kind) {
  static constexpr std::string_view words[] = {"host thread", "stream", "copy engine", "pager"};
  return words[static_cast<std::size_t>(kind)];
}

std::string_view to_string(SpanCategory category) {
  static constexpr std::string_view words[kSpanCategories] = {"compute",   "forward",   "recompute",  "backward",
                                                              "optimizer", "copy",      "collective", "storage",
                                                              "host",      "allocator", "waiting"};
  return words[static_cast<std::size_t>(category)];
}

SpanCategory work_category(OpKind kind, Phase phase) {
  switch (kind) {
    case OpKind::copy:
      return SpanCategory::copy;
    case OpKind::collective:
      return SpanCategory::collective;
    case OpKind::storage_io:
      return SpanCategory::storage;
    default:
      break;
  }
  switch (phase) {
    case Phase::forward:
      return SpanCategory::forward;
    case Phase::recompute:
      return SpanCategory::recompute;
    case Phase::backward:
      return SpanCategory::backward;
    case Phase::optimizer:
      return SpanCategory::optimizer;
    case Phase::unknown:
      break;
  }
  return SpanCategory::compute;
}

SpanCategory call_category(OpKind kind, WaitFor wait_for) {
  if (kind == OpKind::alloc || kind == OpKind::free) return SpanCategory::allocator;
  return kind == OpKind::synchronize || wait_for != WaitFor::nothing ? SpanCategory::waiting : SpanCategory::host;
}

RunIndex build_run_index(const Run& run) { return IndexBuilder(run).build(); }

}  // namespace memwall
