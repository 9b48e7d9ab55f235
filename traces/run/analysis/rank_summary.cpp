#include "traces/run/analysis/rank_summary.h"

#include <algorithm>

#include "sim/machine/gpu_place.h"
#include "sim/trace/ranks.h"
#include "sim/trace/rendezvous.h"
#include "traces/run/analysis/rank_meetings.h"

namespace memwall {
namespace {

void add_steps(const Run& run, std::vector<RankSummary>& ranks) {
  for (const StepWindow& window : step_windows(run)) {
    RankSummary& rank = ranks[window.rank];
    rank.step_time += window.end - window.begin;
    ++rank.steps;
  }
  for (RankSummary& rank : ranks)
    if (rank.steps > 0) rank.step_time /= rank.steps;
}

void add_spans(const Run& run, std::vector<RankSummary>& ranks) {
  std::vector<Time> first(ranks.size(), kNever), last(ranks.size());
  for (OpId id = 0; id < run.result.records.size(); ++id) {
    const OpRecord& record = run.result.records[id];
    const Op& op = run.trace->ops[id];
    if (record.start == kNever || run.trace->streams[op.stream].role == StreamRole::storage) continue;
    const std::uint16_t rank = rank_of(run.trace, op);
    first[rank] = std::min(first[rank], record.start);
    last[rank] = std::max(last[rank], record.end);
  }
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (first[r] != kNever) ranks[r].gpu_span = last[r] - first[r];
}

void add_rendezvous(const Run& run, std::span<const OpId> members, std::vector<RankSummary>& ranks) {
  Time before{};  // when the one before the last came
  OpId last = kNoOp;
  for (const OpId id : members) {
    const OpRecord& record = run.result.records[id];
    RankSummary& rank = ranks[rank_of(run.trace, run.trace->ops[id])];
    ++rank.collectives;
    if (record.peer >= run.result.records.size()) {
      last = id;
    } else {
      before = std::max(before, record.start);
      rank.peer_wait += run.result.records[record.peer].start - record.start;
    }
  }
  if (last == kNoOp) return;
  RankSummary& rank = ranks[rank_of(run.trace, run.trace->ops[last])];
  ++rank.last;
  rank.held_up += run.result.records[last].start - before;
}

void add_places(const Run& run, std::vector<RankSummary>& ranks) {
  const GpuPlaces places(run.machine.one);
  for (RankSummary& rank : ranks)
    if (places.node_size() > 0) rank.node = places.of(rank.number).node;
  for (const PeerWait& wait : rank_meetings(run).waits) {
    RankSummary& rank = ranks[wait.waiter];
    if (rank.waits_for && to_seconds(wait.time) <= to_seconds(rank.waits_for_time)) continue;
    rank.waits_for = ranks[wait.last].number;
    rank.waits_for_time = wait.time;
  }
}

}  // namespace

std::vector<RankSummary> rank_summaries(const Run& run) {
  if (rank_count(run.trace) == 1) return {};
  std::vector<RankSummary> ranks(rank_count(run.trace));
  const std::vector<Time> ends = rank_ends(run);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    ranks[r].number = run.trace->rank_table[r].number;
    ranks[r].end = ends[r];
  }
  add_steps(run, ranks);
  add_spans(run, ranks);
  const RendezvousTable rendezvous(run.trace);
  for (std::size_t m = 0; m < rendezvous.size(); ++m) add_rendezvous(run, rendezvous.members(m), ranks);
  add_places(run, ranks);
  return ranks;
}

std::optional<std::size_t> straggler(const std::vector<RankSummary>& ranks) {
  constexpr double kStandsOut = 2;
  std::optional<std::size_t> found;
  double longest = 0, next = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double held_up = to_seconds(ranks[i].held_up);
    if (held_up > longest) {
      next = longest;
      longest = held_up;
      found = i;
    } else {
      next = std::max(next, held_up);
    }
  }
  return longest >= kStandsOut * next ? found : std::nullopt;
}

}  // namespace memwall
