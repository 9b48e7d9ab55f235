// What a viewer draws, by range: lanes, spans, memory, links. run_file_details.cpp has the rest.
#include "traces/run/file/run_file_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "traces/run/file/run_tables.h"

namespace memwall {
namespace {

constexpr std::uint64_t kSmallLevel = 8192;  // cells of a level that stays in memory once it was read

Hdf5Handle opened(ChecksummedFile& checksummed, const ReadContext& context) {
  Hdf5Handle file = checksummed.open_hdf5();
  if (!file.valid()) context.refuse("its checksums match, but HDF5 cannot open it.");
  return file;
}

template <class High>
void require_ascending(const ReadContext& context, const std::vector<High>& rows, const std::string& name) {
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].time < rows[i - 1].time)
      context.refuse(
          fmt::format("'/{}/time_ps': {} ps follows {} ps.", name, rows[i].time.count(), rows[i - 1].time.count()));
}

}  // namespace

RunInFile::RunInFile(const std::filesystem::path& path)
    : checksummed_(path),
      context_{path.string(), checksummed_.length(), &checksummed_, {}},
      file_(opened(checksummed_, context_)) {
  read_small_parts(context_, file_.get(), outline_.run);
  read_counts();
  check_ = std::make_unique<RunCheck>(
      outline_.run, RunCounts{outline_.ops, outline_.storages, outline_.uses, outline_.strings, outline_.residencies},
      context_);
  check_->small_parts();
  find_rank_views(outline_.run, context_);
  read_index();
  engines_ = std::make_unique<EngineLanes>(engine_lanes_of(outline_));
}

OpenTable& RunInFile::table(const std::string& name) const {
  const Hdf5Section section;
  std::unique_ptr<OpenTable>& open = tables_[name];
  if (!open) open = std::make_unique<OpenTable>(context_, file_.get(), name);
  return *open;
}

void RunInFile::read_counts() {
  outline_.ops = table("ops").rows();
  outline_.storages = table("storages").rows();
  outline_.residencies = table("residency").rows();
  outline_.uses = table("uses").rows();
  outline_.moves = table("moves").rows();
  outline_.strings = table("string_ends").rows();
  if (outline_.ops >= kNoOp || outline_.storages >= kNoStorage)
    context_.refuse(
        fmt::format("it has {} ops and {} storages, more than can be numbered.", outline_.ops, outline_.storages));
  if (table("spans").rows() != outline_.ops)
    context_.refuse(fmt::format("'/spans' has {} rows, expected {}.", table("spans").rows(), outline_.ops));
}

std::vector<LaneCell> RunInFile::read_cells(std::uint32_t lane, std::uint8_t level, std::uint64_t first,
                                            std::uint64_t count) const {
  std::vector<LaneCell> cells = table("index/cells").read<LaneCell>(first, count);
  const RunLane& of = outline_.lanes[lane];
  const int width_log2 = of.base_log2 + level;
  const auto last = static_cast<std::uint64_t>(outline_.run.result.end.count()) >> width_log2;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const LaneCell& cell = cells[i];
    if (cell.bucket > last || (i > 0 && cell.bucket <= cells[i - 1].bucket) || cell.busy < Duration{} ||
        cell.busy.count() > std::int64_t{1} << width_log2 || cell.begins > of.spans)
      context_.refuse(fmt::format("'/index/cells', row {}: bucket {}, busy for {} ps, {} begins, is no bucket there.",
                                  first + i, cell.bucket, cell.busy.count(), cell.begins));
  }
  return cells;
}

// The first row of a level whose bucket is not before `bucket`.
std::uint64_t RunInFile::row_of_bucket(const LevelRows& rows, std::uint64_t bucket) const {
  std::uint64_t low = rows.first, high = rows.first + rows.count;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (table("index/cells").read<LaneCell>(middle, 1, {"bucket"}).front().bucket < bucket)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

std::vector<LaneCell> RunInFile::cells(std::uint32_t lane, std::uint8_t level, std::uint64_t first,
                                       std::uint64_t last) const {
  if (lane >= levels_.size() || level >= levels_[lane].size() || first >= last) return {};
  const LevelRows& rows = levels_[lane][level];
  if (rows.count > kSmallLevel) {
    const std::uint64_t begin = row_of_bucket(rows, first), end = row_of_bucket(rows, last);
    return begin < end ? read_cells(lane, level, begin, end - begin) : std::vector<LaneCell>{};
  }
  const Hdf5Section section;
  auto found = small_levels_.find({lane, level});
  if (found == small_levels_.end())
    found = small_levels_.emplace(std::pair(lane, level), read_cells(lane, level, rows.first, rows.count)).first;
  const auto before = [](const LaneCell& cell, std::uint64_t bucket) { return cell.bucket < bucket; };
  const auto begin = std::lower_bound(found->second.begin(), found->second.end(), first, before);
  return {begin, std::lower_bound(begin, found->second.end(), last, before)};
}

SpanBlock RunInFile::spans(std::uint32_t number) const {
  SpanBlock block;
  const std::uint64_t first = std::min<std::uint64_t>(std::uint64_t{number} * kSpanBlock, outline_.ops);
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kSpanBlock, outline_.ops - first));
  block.first = number * kSpanBlock;
  const auto ops = table("ops").read<Op>(first, count,
                                         {"kind", "phase", "graph_member", "placed", "thread", "stream", "name",
                                          "operator", "module", "from", "to", "pageable"});
  const auto records = table("spans").read<OpRecord>(
      first, count, {"call_begin_ps", "call_time_ps", "begin_ps", "time_ps", "call_reason", "return_reason", "reason"});
  reserve_spans(block, count);
  for (std::size_t i = 0; i < count; ++i) {
    check_->drawn(ops[i], first + i);
    check_->drawn(ops[i], records[i], first + i);
    append_span(block, ops[i], records[i], *engines_);
  }
  return block;
}

std::vector<MoveRecord> RunInFile::moves(std::uint64_t first, std::uint64_t count) const {
  const std::uint64_t from = std::min(first, outline_.moves);
  auto moves = table("moves").read<MoveRecord>(from, std::min(count, outline_.moves - from));
  for (std::size_t i = 0; i < moves.size(); ++i) check_->move(moves[i], from + i);
  return moves;
}

template <class Point>
auto RunInFile::select(const std::string& name, std::uint32_t number, Time begin, Time end, std::size_t most) const {
  using High = decltype(high_of(Point{}));
  const std::string points_name = fmt::format("{}/{}", name, number);
  OpenTable& points = table(points_name);
  OpenTable& levels = table("index/" + points_name);
  const auto read = [&](std::size_t level, std::uint64_t first, std::uint64_t count) {
    std::vector<High> rows;
    if (level == 0) {
      for (const Point& point : points.read<Point>(first, count)) rows.push_back(high_of(point));
    } else {
      std::uint64_t before = 0;
      for (std::size_t k = 1; k < level; ++k) before += rows_of_level(points.rows(), k);
      rows = levels.read<High>(before + first, count);
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
      check_->within_run(rows[i].time, rows[i].time, points_name.c_str(), first + i);
    require_ascending(context_, rows, points_name);
    return rows;
  };
  return selected(SeriesRows<High>{points.rows(), outline_.run.result.end, read}, begin, end, most);
}

std::vector<MemoryHigh> RunInFile::memory(std::uint32_t tier, Time begin, Time end, std::size_t most) const {
  if (tier >= outline_.run.machine.tiers.size()) return {};
  return select<MemoryPoint>("memory", tier, begin, end, most);
}

std::vector<RateHigh> RunInFile::link_rates(std::uint32_t link, Time begin, Time end, std::size_t most) const {
  if (link >= outline_.run.machine.links.size()) return {};
  std::vector<RateHigh> rates = select<RatePoint>("link_rates", link, begin, end, most);
  for (const RateHigh& rate : rates)
    if (!(rate.mean >= 0 && rate.high >= 0 && rate.high <= std::numeric_limits<double>::max()))
      context_.refuse(fmt::format("'/link_rates/{}': {} bytes per second are no rate.", link, rate.high));
  return rates;
}

}  // namespace memwall
