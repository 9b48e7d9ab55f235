#include "gui/model/selection_statistics.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace memwall::gui {
namespace {

// Blocks in which a lane is busy beyond this many moves of a pager are read in pieces.
constexpr std::uint64_t kMovesAtATime = 1 << 16;

// Time in which at least one of many stretches lasts; they come in any order.
class Union {
 public:
  void add(Time begin, Time end) {
    // Spans of a lane come nearly in order: those that touch the last are joined at once.
    if (!stretches_.empty() && begin >= stretches_.back().begin && begin <= stretches_.back().end)
      stretches_.back().end = std::max(stretches_.back().end, end);
    else if (end > begin)
      stretches_.push_back({begin, end});
    if (stretches_.size() >= limit_) join();
  }
  Duration length() {
    join();
    Duration sum{};
    for (const TimeRange& stretch : stretches_) sum += stretch.length();
    return sum;
  }

 private:
  void join() {
    std::sort(stretches_.begin(), stretches_.end(),
              [](const TimeRange& a, const TimeRange& b) { return a.begin < b.begin; });
    std::size_t kept = 0;
    for (const TimeRange& stretch : stretches_)
      if (kept > 0 && stretch.begin <= stretches_[kept - 1].end)
        stretches_[kept - 1].end = std::max(stretches_[kept - 1].end, stretch.end);
      else
        stretches_[kept++] = stretch;
    stretches_.resize(kept);
    limit_ = std::max<std::size_t>(4096, 2 * kept);
  }
  std::vector<TimeRange> stretches_;
  std::size_t limit_ = 4096;
};

class Statistics {
 public:
  Statistics(const OpenRun& run, TimeRange range, StatisticsKey key, const std::vector<bool>& shown)
      : run_(run), range_(range), key_(key), shown_(shown), lanes_(run.outline().lanes), busy_(lanes_.size()) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (lanes_[lane].kind == RunLaneKind::thread) thread_lane_[lanes_[lane].index] = lane;
      if (lanes_[lane].kind == RunLaneKind::stream) stream_lane_[lanes_[lane].index] = lane;
    }
  }

  SelectionStatistics of(const LoadProgress& progress) {
    // Blocks of ops with spans in the range, of any lane.
    std::map<std::uint32_t, bool> blocks;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (!is_shown(lane) || lanes_[lane].kind == RunLaneKind::pager) continue;
      for (const LaneBlock& block : run_.outline().blocks[lane])
        if (range_.overlaps(block.begin, block.end)) blocks[block.block] = true;
    }
    std::size_t done = 0;
    for (const auto& [number, wanted] : blocks) {
      if (progress && !progress(static_cast<double>(done++) / static_cast<double>(blocks.size())))
        throw LoadCancelled{};
      if (const auto loaded = run_.spans ? run_.spans->find(number) : nullptr)
        add_block(loaded->spans);
      else
        add_block(run_.source->spans(number));
    }
    add_moves(progress);
    return result();
  }

 private:
  bool is_shown(std::size_t lane) const { return shown_.empty() || (lane < shown_.size() && shown_[lane]); }

  void add_block(const SpanBlock& spans) {
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const auto thread = thread_lane_.find(spans.thread[i]);
      if (spans.call_begin[i] != kNever && thread != thread_lane_.end() && is_shown(thread->second))
        add(spans, i, spans.call_begin[i], spans.call_time[i], thread->second, true);
      if (spans.begin[i] == kNever) continue;
      // Work stands in its stream, and a copy in its engine too; it counts once.
      const auto stream = stream_lane_.find(spans.stream[i]);
      const bool in_stream = stream != stream_lane_.end() && is_shown(stream->second);
      const std::size_t engine = spans.engine[i];
      const bool in_engine = spans.engine[i] != kNoLane && engine < lanes_.size() && is_shown(engine);
      if (in_stream)
        add(spans, i, spans.begin[i], spans.time[i], stream->second, false);
      else if (in_engine)
        add(spans, i, spans.begin[i], spans.time[i], engine, false);
      if (in_stream && in_engine) occupy(engine, spans.begin[i], spans.begin[i] + spans.time[i]);
    }
  }

  // What of [begin, end] lies in the range.
  Duration within(Time begin, Time end) const {
    return std::max(Duration{}, std::min(end, range_.end) - std::max(begin, range_.begin));
  }
  void occupy(std::size_t lane, Time begin, Time end) {
    busy_[lane].add(std::max(begin, range_.begin), std::min(end, range_.end));
  }

  void add(const SpanBlock& spans, std::size_t i, Time begin, Duration length, std::size_t lane, bool call) {
    const Time end = begin + length;
    if (!range_.overlaps(begin, end)) return;
    occupy(lane, begin, end);
    count(rows_[key_of(spans, i)], within(begin, end), length, call);
    count(total_, within(begin, end), length, call);
  }

  struct Row {
    StatisticsRow sums;
    Duration longest_work{}, longest_call{};
    bool works = false;
  };

  static void count(Row& row, Duration inside, Duration length, bool call) {
    ++row.sums.count;
    (call ? row.sums.call : row.sums.work) += inside;
    Duration& longest = call ? row.longest_call : row.longest_work;
    longest = std::max(longest, length);
    row.works |= !call;
  }

  // Rows of one key stand together; what a span has no text for stands with its kind.
  std::uint64_t key_of(const SpanBlock& spans, std::size_t i) const {
    constexpr std::uint64_t kByKind = std::uint64_t{1} << 32;
    switch (key_) {
      case StatisticsKey::op:
        return spans.name[i] != 0 ? spans.name[i] : kByKind + static_cast<std::uint64_t>(spans.kind[i]);
      case StatisticsKey::module:
        return spans.module[i];
      case StatisticsKey::phase:
        return static_cast<std::uint64_t>(spans.phase[i]);
      case StatisticsKey::kind:
        break;
    }
    return kByKind + static_cast<std::uint64_t>(spans.kind[i]);
  }

  std::string name_of_key(std::uint64_t key) const {
    constexpr std::uint64_t kByKind = std::uint64_t{1} << 32;
    if (key == kMoves) return "pager";
    if (key >= kByKind) return std::string(to_string(static_cast<OpKind>(key - kByKind)));
    if (key_ == StatisticsKey::phase) return key == 0 ? "no phase" : std::string(to_string(static_cast<Phase>(key)));
    if (key == 0) return "no module";
    return run_.source->text(static_cast<StringId>(key));
  }

  void add_moves(const LoadProgress& progress) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (lanes_[lane].kind != RunLaneKind::pager || !is_shown(lane)) continue;
      const std::uint64_t all = run_.outline().moves;
      for (std::uint64_t first = 0; first < all; first += kMovesAtATime) {
        if (progress && !progress(1)) throw LoadCancelled{};
        for (const MoveRecord& move : run_.source->moves(first, std::min(kMovesAtATime, all - first)))
          if (move.from == lanes_[lane].from && move.to == lanes_[lane].to && range_.overlaps(move.start, move.end)) {
            occupy(lane, move.start, move.end);
            count(rows_[kMoves], within(move.start, move.end), move.end - move.start, false);
            count(total_, within(move.start, move.end), move.end - move.start, false);
          }
      }
    }
  }

  static StatisticsRow finished(const Row& row, std::string name) {
    StatisticsRow out = row.sums;
    out.name = std::move(name);
    out.longest = row.works ? row.longest_work : row.longest_call;
    return out;
  }

  SelectionStatistics result() {
    SelectionStatistics out;
    out.range = range_;
    for (const auto& [key, row] : rows_) out.rows.push_back(finished(row, name_of_key(key)));
    std::sort(out.rows.begin(), out.rows.end(), [](const StatisticsRow& a, const StatisticsRow& b) {
      if (a.work != b.work) return a.work > b.work;
      return a.call != b.call ? a.call > b.call : a.name < b.name;
    });
    out.total = finished(total_, "all");
    for (Union& busy : busy_) out.busy.push_back(busy.length());
    return out;
  }

  static constexpr std::uint64_t kMoves = ~std::uint64_t{0};

  const OpenRun& run_;
  TimeRange range_;
  StatisticsKey key_;
  const std::vector<bool>& shown_;
  const std::vector<RunLane>& lanes_;
  std::unordered_map<std::uint16_t, std::size_t> thread_lane_, stream_lane_;
  std::unordered_map<std::uint64_t, Row> rows_;
  Row total_;
  std::vector<Union> busy_;
};

}  // namespace

std::string_view to_string(StatisticsKey key) {
  switch (key) {
    case StatisticsKey::op:
      return "op";
    case StatisticsKey::module:
      return "module";
    case StatisticsKey::phase:
      return "phase";
    case StatisticsKey::kind:
      break;
  }
  return "kind";
}

SelectionStatistics statistics(const OpenRun& run, TimeRange range, StatisticsKey key, const std::vector<bool>& shown,
                               const LoadProgress& progress) {
  return Statistics(run, range, key, shown).of(progress);
}

}  // namespace memwall::gui
