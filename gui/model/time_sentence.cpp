#include "gui/model/time_sentence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <vector>

#include "gui/model/peer_text.h"
#include "traces/figure/axis.h"

namespace memwall::gui {
namespace {

struct NamedShare {
  std::string_view name;
  double share = 0;
};

// Largest first; what rounds to nothing is left out.
std::string shares_text(std::vector<NamedShare> shares, int decimals) {
  std::stable_sort(shares.begin(), shares.end(),
                   [](const NamedShare& a, const NamedShare& b) { return a.share > b.share; });
  const double least = decimals == 0 ? 0.005 : 0.0005;
  std::vector<std::string> words;
  for (const auto& [name, share] : shares)
    if (share >= least) words.push_back(fmt::format("{} {:.{}f} %", name, 100 * share, decimals));
  return fmt::format("{}", fmt::join(words, ", "));
}

using ClassSeconds = std::array<double, kTimeClasses>;

void add_times(ClassSeconds& sum, const ClassTimes& times) {
  for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += to_seconds(times[static_cast<TimeClass>(c)]);
}

std::string shares_text(const ClassSeconds& seconds, int decimals) {
  std::vector<NamedShare> shares;
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  for (std::size_t c = 0; c < seconds.size() && all > 0; ++c)
    shares.push_back({to_string(static_cast<TimeClass>(c)), seconds[c] / all});
  return shares_text(std::move(shares), decimals);
}

// Mean over all steps: the windows are known as soon as the run is open.
Duration mean_step(const RunOutline& outline) {
  double sum = 0;
  for (const StepWindow& step : outline.steps) sum += to_seconds(step.end - step.begin);
  return outline.steps.empty() ? outline.run.result.end
                               : from_seconds(sum / static_cast<double>(outline.steps.size()));
}

bool computes(const Run& run, const RunLane& lane) {
  return lane.kind == RunLaneKind::stream && lane.levels > 0 && lane.index < run.trace->streams.size() &&
         run.trace->streams[lane.index].role == StreamRole::compute;
}

// What the streams that compute do in a few of the steps, as the level of detail has it: a bucket counts for what takes
// most of it, so buckets are small against a step.
class StreamShares {
 public:
  explicit StreamShares(const OpenRun& open) : open_(open), outline_(open.outline()) {
    constexpr std::size_t kMostSteps = 4;
    const std::vector<StepWindow>& steps = outline_.steps;
    for (std::size_t i = 0; i < std::min(kMostSteps, steps.size()); ++i)
      add_step(steps[steps.size() <= kMostSteps ? i : (2 * i + 1) * steps.size() / (2 * kMostSteps)]);
  }

  std::string text() const {
    if (!(all_ > 0)) return "";
    std::vector<NamedShare> shares;
    for (std::size_t c = 0; c < busy_.size(); ++c)
      shares.push_back({to_string(static_cast<SpanCategory>(c)), busy_[c] / all_});
    const double sum = std::accumulate(busy_.begin(), busy_.end(), 0.0) / all_;
    const std::string words = shares_text(std::move(shares), 0);
    return fmt::format("; streams that compute work {:.0f} % of the time{}", 100 * sum,
                       words.empty() ? "" : ": about " + words);
  }

 private:
  void add_step(const StepWindow& step) {
    for (std::uint32_t i = 0; i < outline_.lanes.size(); ++i) {
      const RunLane& lane = outline_.lanes[i];
      if (computes(outline_.run, lane) && lane.rank == step.rank) add_lane(i, lane, step);
    }
  }

  void add_lane(std::uint32_t index, const RunLane& lane, const StepWindow& step) {
    constexpr std::int64_t kBuckets = 512;
    const std::int64_t widest = std::max<std::int64_t>(1, (step.end - step.begin).count() / kBuckets);
    int level = 0;
    while (level + 1 < lane.levels && (std::int64_t{1} << (lane.base_log2 + level + 1)) <= widest) ++level;
    const auto bucket = [&](Time time) { return static_cast<std::uint64_t>(time.count()) >> (lane.base_log2 + level); };
    const std::uint64_t first = bucket(step.begin), last = bucket(step.end) + 1;
    for (const LevelOfDetail::Cells& cells :
         open_.spans->level_of_detail().cells(index, static_cast<std::uint8_t>(level), first, last))
      for (const LaneCell& cell : *cells)
        if (cell.bucket >= first && cell.bucket < last)
          busy_[static_cast<std::size_t>(cell.category)] += to_seconds(cell.busy);
    all_ += to_seconds(step.end - step.begin);
  }

  const OpenRun& open_;
  const RunOutline& outline_;
  std::array<double, kSpanCategories> busy_{};
  double all_ = 0;  // time of these steps, once for each stream
};

}  // namespace

std::string step_sentence(const OpenRun& run) {
  if (!run.analysis)
    return fmt::format("A step takes {}{}.", format_time(mean_step(run.outline())), StreamShares(run).text());
  const RunSummary& summary = run.analysis->summary;
  ClassSeconds all{};
  add_times(all, summary.times);
  const std::string words = shares_text(all, 1);
  return fmt::format("A step takes {}{}{}.", format_time(summary.step_time), words.empty() ? "" : ": ", words);
}

std::string rank_times(const OpenRun& run, std::size_t rank) {
  if (!run.analysis) return "";
  const RunSummary& summary = run.analysis->summary;
  const auto& ranks = run.outline().run.trace->rank_table;
  ClassSeconds times{};
  double sum = 0;
  int steps = 0;
  for (const StepSummary& step : summary.steps) {
    if (step.rank && (rank >= ranks.size() || *step.rank != ranks[rank].number)) continue;
    add_times(times, step.times);
    sum += to_seconds(step.step_time);
    ++steps;
  }
  if (steps == 0) return "";
  return fmt::format("step {}: {}", format_time(from_seconds(sum / steps)), shares_text(times, 0));
}

std::string rank_title(const OpenRun& run, std::size_t rank) {
  std::string title = fmt::format("Rank {}", run.outline().run.trace->rank_table[rank].number);
  if (const std::string node = node_text(run, rank); !node.empty()) title += " (" + node + ")";
  if (!run.analysis || rank >= run.analysis->summary.by_rank.size()) return title;
  return straggler(run.analysis->summary.by_rank) == rank ? title + ", straggler" : title;
}

std::string rank_sentence(const OpenRun& run, std::size_t rank) {
  std::string text = rank_title(run, rank);
  if (!run.analysis || rank >= run.analysis->summary.by_rank.size()) return text;
  text += ": " + rank_times(run, rank);
  const DurationSum& held_up = run.analysis->summary.by_rank[rank].held_up;
  return to_seconds(held_up) > 0 ? text + "; held the others up " + format_time(held_up) : text;
}

}  // namespace memwall::gui
