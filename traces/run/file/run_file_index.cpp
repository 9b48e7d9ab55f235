// What a run in a file says of its lanes: read when it is opened, and checked before anyone counts on it.
#include <fmt/format.h>

#include <bit>

#include "traces/run/file/run_file_source.h"
#include "traces/run/file/table_reader.h"

namespace memwall {
namespace {

constexpr std::uint64_t kMostIndexRows = std::uint64_t{1} << 24;  // that are kept in memory

// A short list of the index.
template <class T>
std::vector<T> read_list(const ReadContext& context, hid_t file, const std::string& name) {
  TableReader reader(context, file);
  if (const std::size_t rows = reader.count(name); rows > kMostIndexRows)
    context.refuse(fmt::format("table '/{}' has {} rows; expected at most {}.", name, rows, kMostIndexRows));
  std::vector<T> rows;
  reader.list(name, rows);
  return rows;
}

}  // namespace

void RunInFile::read_index() {
  outline_.lanes = read_list<RunLane>(context_, file_.get(), "index/lanes");
  check_lanes();
  read_levels();
  read_blocks();
  read_steps();
  check_series_levels<MemoryPoint>("memory", outline_.run.machine.tiers.size());
  check_series_levels<RatePoint>("link_rates", outline_.run.machine.links.size());
}

// Threads and streams are lanes in their order, then come engines, then the pager.
void RunInFile::check_lanes() const {
  const Trace& trace = outline_.run.trace;
  const std::size_t threads = trace.threads.size(), streams = trace.streams.size();
  if (outline_.lanes.size() < threads + streams)
    context_.refuse(fmt::format("'/index/lanes' has {} rows, but there are {} threads and {} streams.",
                                outline_.lanes.size(), threads, streams));
  RunLaneKind last = RunLaneKind::thread;
  for (std::size_t i = 0; i < outline_.lanes.size(); ++i) {
    const RunLane& lane = outline_.lanes[i];
    const bool in_place = i < threads             ? lane.kind == RunLaneKind::thread && lane.index == i
                          : i < threads + streams ? lane.kind == RunLaneKind::stream && lane.index == i - threads
                                                  : lane.kind >= RunLaneKind::engine && lane.kind >= last;
    if (!in_place)
      context_.refuse(fmt::format("'/index/lanes', row {}: a {} with number {} is out of order.", i,
                                  to_string(lane.kind), lane.index));
    last = lane.kind;
    check_lane(i);
  }
}

void RunInFile::check_lane(std::size_t number) const {
  const RunLane& lane = outline_.lanes[number];
  const std::uint64_t ranks = std::max<std::size_t>(1, outline_.run.trace->rank_table.size());
  check_->below(lane.rank, ranks, "/index/lanes/rank", number);
  if (lane.kind == RunLaneKind::engine) {
    check_->below(lane.engine, kEngines, "/index/lanes/engine", number);
    check_->below(number, kNoLane, "/index/lanes/kind", number);
  }
  if (lane.kind == RunLaneKind::pager) {
    check_->below(lane.from, outline_.run.machine.tiers.size(), "/index/lanes/from", number);
    check_->below(lane.to, outline_.run.machine.tiers.size(), "/index/lanes/to", number);
  }
  check_->below(lane.spans, (lane.kind == RunLaneKind::pager ? outline_.moves : outline_.ops) + 1, "/index/lanes/spans",
                number);
  if (lane.levels == 0) return;
  check_->below(lane.base_log2, 63, "/index/lanes/base_log2", number);
  const std::uint64_t last_bucket = static_cast<std::uint64_t>(outline_.run.result.end.count()) >> lane.base_log2;
  if (lane.levels != std::bit_width(last_bucket) + 1)
    context_.refuse(fmt::format("'/index/lanes/levels', row {}: found {}, expected {}.", number, lane.levels,
                                std::bit_width(last_bucket) + 1));
}

void RunInFile::read_levels() {
  const auto rows = read_list<Owned<std::uint32_t>>(context_, file_.get(), "index/levels");
  const std::uint64_t cells = table("index/cells").rows();
  levels_.resize(outline_.lanes.size());
  std::uint64_t first = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_->below(rows[i].owner, outline_.lanes.size(), "/index/levels/owner", i);
    if (i > 0 && rows[i].owner < rows[i - 1].owner)
      context_.refuse(fmt::format("'/index/levels/owner', row {}: found {}, which is out of order.", i, rows[i].owner));
    levels_[rows[i].owner].push_back({first, rows[i].item});
    first += rows[i].item;
  }
  if (first != cells)
    context_.refuse(fmt::format("'/index/cells' has {} rows, but its levels are of {}.", cells, first));
  for (std::size_t i = 0; i < levels_.size(); ++i)
    if (levels_[i].size() != outline_.lanes[i].levels)
      context_.refuse(fmt::format("'/index/levels' has {} levels of lane {}, expected {}.", levels_[i].size(), i,
                                  outline_.lanes[i].levels));
}

void RunInFile::read_blocks() {
  const auto rows = read_list<Owned<LaneBlock>>(context_, file_.get(), "index/blocks");
  outline_.blocks.resize(outline_.lanes.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const LaneBlock& block = rows[i].item;
    check_->below(rows[i].owner, outline_.lanes.size(), "/index/blocks/owner", i);
    const bool moves = outline_.lanes[rows[i].owner].kind == RunLaneKind::pager;
    const std::uint64_t items = moves ? outline_.moves : outline_.ops;
    check_->below(block.block, (items + kSpanBlock - 1) / kSpanBlock, "/index/blocks/block", i);
    check_->below(block.spans, kSpanBlock + 1, "/index/blocks/spans", i);
    check_->within_run(block.begin, block.end, "/index/blocks/begin_ps", i);
    auto& of_lane = outline_.blocks[rows[i].owner];
    if (!of_lane.empty() && of_lane.back().block >= block.block)
      context_.refuse(fmt::format("'/index/blocks/block', row {}: found {}, which is out of order.", i, block.block));
    of_lane.push_back(block);
  }
}

void RunInFile::read_steps() {
  outline_.steps = read_list<StepWindow>(context_, file_.get(), "index/steps");
  for (std::size_t i = 0; i < outline_.steps.size(); ++i) {
    const StepWindow& step = outline_.steps[i];
    check_->within_run(step.begin, step.end, "/index/steps/begin_ps", i);
    check_->below(step.rank, std::max<std::size_t>(1, outline_.run.trace->rank_table.size()), "/index/steps/rank", i);
  }
}

template <class Point>
void RunInFile::check_series_levels(const std::string& name, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    const std::string points = fmt::format("{}/{}", name, i);
    const std::uint64_t rows = table(points).rows();
    std::uint64_t expected = 0;
    for (std::size_t level = 1; level < levels_of(rows); ++level) expected += rows_of_level(rows, level);
    if (table("index/" + points).rows() != expected)
      context_.refuse(
          fmt::format("'/index/{}' has {} rows, expected {}.", points, table("index/" + points).rows(), expected));
  }
}

}  // namespace memwall
