#include "traces/run/analysis/pipeline_summary.h"

#include <algorithm>
#include <numeric>

#include "sim/duration_sum.h"
#include "sim/trace/ranks.h"
#include "sim/words.h"

namespace memwall {
namespace {

// Of one rank, summed over its steps.
struct StageTimes {
  DurationSum step, compute, recompute, bubble, equals, other;
  std::vector<DurationSum> exposed;  // by name of the group
  std::uint32_t steps = 0;
};

Duration mean(const DurationSum& sum, std::uint32_t steps) {
  return steps == 0 ? Duration{} : from_seconds(sum.seconds() / steps);
}

// The names of the trace's groups, each once, and the name of each group.
struct GroupNames {
  explicit GroupNames(const Trace& trace) {
    for (const ProcessGroup& group : trace.groups) number.push_back(of(group.name));
  }
  std::size_t of(const std::string& name) {
    const std::string known = name.empty() ? "communication" : name;
    const auto found = std::find(names.begin(), names.end(), known);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    names.push_back(known);
    return names.size() - 1;
  }
  std::size_t of(const Op& op) { return op.group < number.size() ? number[op.group] : of(std::string()); }

  std::vector<std::string> names;
  std::vector<std::size_t> number;
};

// Goes along a rank's timeline and path at once: both ascend and neither leaves anything out.
class StageClock {
 public:
  StageClock(const Run& run, const std::vector<PathSegment>& path, GroupNames& groups)
      : run_(run), path_(path), groups_(groups) {}

  void add(const ClassSpan& span, StageTimes& times) {
    const Duration length = span.end - span.begin;
    switch (span.time_class) {
      case TimeClass::recompute:
        times.recompute += length;
        [[fallthrough]];
      case TimeClass::compute:
        times.compute += length;
        return;
      case TimeClass::collective:
        return add_communication(span, times);
      default:
        times.other += length;
    }
  }

 private:
  void add_communication(const ClassSpan& span, StageTimes& times) {
    auto segment =
        std::partition_point(path_.begin(), path_.end(), [&](const PathSegment& s) { return s.end <= span.begin; });
    Time at = span.begin;
    for (; segment != path_.end() && segment->begin < span.end; ++segment) {
      const Duration part = std::min(span.end, segment->end) - std::max(span.begin, segment->begin);
      at += part;
      if (segment->time_class != TimeClass::collective || segment->op == kNoOp)
        times.other += part;
      else if (segment->part == PathPart::wait)
        (waits_for_equal(segment->op) ? times.equals : times.bubble) += part;
      else
        add_exposed(groups_.of(run_.trace->ops[segment->op]), part, times);
    }
    times.other += span.end - at;
  }

  bool waits_for_equal(OpId op) const {
    const Trace& trace = run_.trace;
    const OpId peer = run_.result.records[op].peer;
    if (peer >= trace.ops.size()) return false;
    const auto& own = trace.rank_table[rank_of(trace, trace.ops[op])].chunks;
    return !own.empty() && own == trace.rank_table[rank_of(trace, trace.ops[peer])].chunks;
  }

  static void add_exposed(std::size_t group, Duration part, StageTimes& times) {
    if (group >= times.exposed.size()) times.exposed.resize(group + 1);
    times.exposed[group] += part;
  }

  const Run& run_;
  const std::vector<PathSegment>& path_;
  GroupNames& groups_;
};

ClassSpan cut(ClassSpan span, const StepWindow& window) {
  span.begin = std::max(span.begin, window.begin);
  span.end = std::min(span.end, window.end);
  return span;
}

std::vector<StageTimes> times_of_ranks(const Run& run, const std::vector<std::vector<PathSegment>>& paths,
                                       const std::vector<std::vector<ClassSpan>>& timelines, GroupNames& groups) {
  std::vector<StageTimes> times(run.trace->rank_table.size());
  for (const StepWindow& window : step_windows(run)) {
    StageTimes& its = times[window.rank];
    StageClock clock(run, paths[window.rank], groups);
    const std::vector<ClassSpan>& timeline = timelines[window.rank];
    auto span = std::partition_point(timeline.begin(), timeline.end(),
                                     [&](const ClassSpan& s) { return s.end <= window.begin; });
    for (; span != timeline.end() && span->begin < window.end; ++span) clock.add(cut(*span, window), its);
    its.step += window.end - window.begin;
    ++its.steps;
  }
  return times;
}

std::size_t memory_of(const Run& run, std::size_t rank) {
  const int hbm = run.machine.one.tier("hbm");
  if (hbm < 0) return 0;
  const auto own = static_cast<std::size_t>(hbm);
  return rank < run.machine.views.size() && own < run.machine.views[rank].tier.size()
             ? run.machine.views[rank].tier[own]
             : own;
}

// Forward marks of the first rank's first stage, by its steps.
std::uint32_t count_microbatches(const Trace& trace, std::uint32_t steps) {
  const Rank& first = trace.rank_table.front();
  if (first.chunks.empty() || steps == 0) return 0;
  const std::string name = std::string(kForwardMark) + std::to_string(first.chunks.front().stage);
  std::uint32_t count = 0;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::mark && rank_of(trace, op) == 0 && trace.strings[op.name] == name) ++count;
  return count / steps;
}

void add_shares(PipelineSummary& pipeline) {
  double bubble = 0, all = 0, work = 0, ranks = 0;
  for (const StageSummary& stage : pipeline.stages) {
    bubble += stage.ranks * to_seconds(stage.bubble);
    all += stage.ranks * to_seconds(stage.step_time);
    work += stage.ranks * to_seconds(stage.work());
    ranks += stage.ranks;
  }
  if (all > 0) pipeline.bubble_share = bubble / all;
  const std::size_t chunks = std::max<std::size_t>(1, pipeline.stages.front().chunks.size());
  const double others = static_cast<double>(pipeline.stage_count) / static_cast<double>(chunks) - 1;
  const bool fills = chunks == 1 || pipeline.microbatches > others;
  if (const double passes = static_cast<double>(chunks) * pipeline.microbatches; fills && passes > 0 && others > 0)
    pipeline.ideal_bubble_share = others / (passes + others);
  if (!pipeline.has_several()) return;
  const auto slowest =
      std::max_element(pipeline.stages.begin(), pipeline.stages.end(),
                       [](const StageSummary& a, const StageSummary& b) { return a.work() < b.work(); });
  pipeline.slowest_cost = from_seconds(std::max(0.0, to_seconds(slowest->work()) - work / ranks));
  if (pipeline.slowest_cost > Duration{})
    pipeline.slowest = static_cast<std::size_t>(slowest - pipeline.stages.begin());
}

// Of ranks that hold the same, the one that computes longest against the one that computes least.
void find_straggler(PipelineSummary& pipeline) {
  for (std::size_t slow = 0; slow < pipeline.stages.size(); ++slow)
    for (const StageSummary& other : pipeline.stages) {
      const StageSummary& its = pipeline.stages[slow];
      if (its.chunks.empty() || its.chunks != other.chunks || its.compute - other.compute <= pipeline.straggles)
        continue;
      pipeline.straggler = slow;
      pipeline.straggles = its.compute - other.compute;
    }
}

// Only groups that some rank waits for are named.
void add_groups(const std::vector<StageTimes>& times, const GroupNames& groups, PipelineSummary& pipeline) {
  for (std::size_t g = 0; g < groups.names.size(); ++g) {
    const auto of = [g](const StageTimes& its) { return g < its.exposed.size() ? its.exposed[g] : DurationSum(); };
    if (std::none_of(times.begin(), times.end(), [&](const StageTimes& its) { return of(its).seconds() > 0; }))
      continue;
    pipeline.groups.push_back(groups.names[g]);
    for (std::size_t r = 0; r < times.size(); ++r)
      pipeline.stages[r].exposed.push_back(mean(of(times[r]), times[r].steps));
  }
}

}  // namespace

Duration StageSummary::exposed_in_all() const { return std::accumulate(exposed.begin(), exposed.end(), Duration{}); }

bool has_stages(const Trace& trace) {
  return std::any_of(trace.rank_table.begin(), trace.rank_table.end(),
                     [](const Rank& rank) { return !rank.chunks.empty(); });
}

std::optional<PipelineSummary> pipeline_summary(const Run& run, const std::vector<std::vector<PathSegment>>& paths,
                                                const std::vector<std::vector<ClassSpan>>& timelines) {
  const Trace& trace = run.trace;
  if (!has_stages(trace)) return std::nullopt;
  GroupNames groups(trace);
  const std::vector<StageTimes> times = times_of_ranks(run, paths, timelines, groups);
  PipelineSummary pipeline;
  for (std::size_t r = 0; r < times.size(); ++r) {
    const Rank& rank = trace.rank_table[r];
    const std::uint32_t steps = times[r].steps;
    StageSummary& stage = pipeline.stages.emplace_back();
    stage.rank = rank.number;
    stage.ranks = (1 + static_cast<std::uint32_t>(rank.stands_for.size())) * rank.ranks;
    stage.chunks = rank.chunks;
    stage.step_time = mean(times[r].step, steps);
    stage.compute = mean(times[r].compute, steps);
    stage.recompute = mean(times[r].recompute, steps);
    stage.bubble = mean(times[r].bubble, steps);
    stage.equals = mean(times[r].equals, steps);
    stage.other = mean(times[r].other, steps);
    stage.tier = memory_of(run, r);
    for (const PipelineChunk& chunk : rank.chunks)
      pipeline.stage_count = std::max(pipeline.stage_count, chunk.stage + 1);
  }
  add_groups(times, groups, pipeline);
  pipeline.microbatches = count_microbatches(trace, times.front().steps);
  add_shares(pipeline);
  find_straggler(pipeline);
  return pipeline;
}

std::string stage_name(const StageSummary& stage) {
  if (stage.chunks.empty()) return "rank " + std::to_string(stage.rank);
  std::vector<std::string> numbers;
  for (const PipelineChunk& chunk : stage.chunks) numbers.push_back(std::to_string(chunk.stage));
  return (numbers.size() > 1 ? "stages " : "stage ") + enumerated(numbers);
}

std::string stage_text(const PipelineSummary& pipeline, const StageSummary& stage) {
  if (stage.chunks.empty()) return "";
  return stage_name(stage) + " of " + std::to_string(pipeline.stage_count) + ", " + layers_text(stage.chunks);
}

}  // namespace memwall
