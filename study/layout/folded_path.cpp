#include "study/layout/folded_path.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "sim/engine/simulation.h"
#include "study/layout/folded_trace.h"
#include "study/layout/pass_path.h"
#include "traces/run/analysis/run_scan.h"

namespace memwall {
namespace {

// Whose pass: the rank of the pipeline, the chunk, and which way. Of equal chunks the first one's.
struct PassKind {
  std::int64_t rank = 0, chunk = 0;
  bool backward = false;
  auto operator<=>(const PassKind&) const = default;
};

struct PassTimes {
  Duration device{}, host{};
};

class PathWriter {
 public:
  explicit PathWriter(const FoldedTrace& folded) : folded_(folded) {
    for (const std::vector<PassPlace>& passes : folded.passes) {
      std::unordered_map<OpId, const PassPlace*>& of_rank = passes_.emplace_back();
      for (const PassPlace& pass : passes) {
        if (!pass.folded) continue;
        for (const OpId op : {pass.begin, pass.host, pass.tail})
          if (op != kNoOp) of_rank[op] = &pass;
      }
    }
  }

  // Takes a segment of the folded run: of a pass its time is added to `times`, all else is written.
  void take(const PathSegment& segment, std::map<PassKind, PassTimes>& times) {
    const Duration time = segment.end - segment.begin;
    if (segment.op == kNoOp) return write({Op{}, {}, segment.time_class, segment.part, time});
    const std::size_t program = program_of(segment.op);
    const FoldedTrace::Program& whose = folded_.programs[program];
    const auto pass = passes_[whose.rank].find(static_cast<OpId>(segment.op - whose.first));
    const bool is_host = segment.part == PathPart::call || segment.part == PathPart::gap;
    if (pass != passes_[whose.rank].end() && (is_host || segment.part == PathPart::work)) {
      const PipelinePass& of = pass->second->pass;
      PassTimes& add = times[{static_cast<std::int64_t>(whose.rank), of.chunk, of.backward}];
      (is_host ? add.host : add.device) += time;
      return;
    }
    const Op& op = folded_.trace.ops[segment.op];
    write({op, folded_.trace.shapes[op.shape], segment.time_class, segment.part, time});
  }

  void write(const OpShare& share) {
    if (share.time <= Duration{}) return;
    Trace& trace = path_.run.trace.edit();
    Op op = share.op;
    op.shape = trace.shapes.intern(share.shape);
    trace.ops.push_back(op);
    path_.segments.push_back(
        {end_, end_ + share.time, static_cast<OpId>(trace.ops.size() - 1), share.time_class, share.part});
    end_ += share.time;
  }

  // Of a pass that is waited for so long in all.
  void write(const PassTimes& times, const std::vector<OpShare>& shares, double gap_share) {
    Duration whole{};
    for (const OpShare& share : shares) whole += share.time;
    const double factor = whole > Duration{} ? to_seconds(times.device) / to_seconds(whole) : 0;
    for (OpShare share : shares) {
      share.time = from_seconds(to_seconds(share.time) * factor);
      write(share);
    }
    const Duration gaps = from_seconds(to_seconds(times.host) * gap_share);
    write({Op{}, {}, TimeClass::host, PathPart::gap, gaps});
    write({Op{}, {}, TimeClass::host, PathPart::call, times.host - gaps});
  }

  FoldedPath path() && { return std::move(path_); }

 private:
  std::size_t program_of(OpId op) const {
    const auto& programs = folded_.programs;
    const auto behind = std::upper_bound(programs.begin(), programs.end(), static_cast<std::size_t>(op),
                                         [](std::size_t id, const auto& p) { return id < p.first; });
    return static_cast<std::size_t>(behind - programs.begin()) - 1;
  }

  const FoldedTrace& folded_;
  std::vector<std::unordered_map<OpId, const PassPlace*>> passes_;  // by rank and op
  FoldedPath path_;
  Time end_{};
};

}  // namespace

Duration FoldedPath::time_of(TimeClass of) const {
  Duration time{};
  for (const PathSegment& segment : segments)
    if (segment.time_class == of) time += segment.end - segment.begin;
  return time;
}

FoldedPath folded_path(const ParallelJob& job, ChunkCostCache& costs, const FoldedJob& outcome) {
  const FoldedTrace folded = folded_trace(job, costs, outcome.simulated);
  Run run;
  run.trace = folded.trace;
  run.machine = machine_of_ranks(costs.machine(), run.trace);
  SimulationOptions options;
  options.allocator = "ideal";
  run.result = simulate(run.trace, run.machine, options);
  PathWriter writer(folded);
  std::map<PassKind, PassTimes> times;
  PathSurvey survey(run);
  scan(run, survey);
  for (const PathSegment& segment : critical_path(run, survey)) writer.take(segment, times);
  for (const auto& [kind, time] : times) {
    const PassPath& path = costs.path_of(job, kind.rank, kind.chunk);
    writer.write(time, kind.backward ? path.backward : path.forward, path.gap_share);
  }
  FoldedPath path = std::move(writer).path();
  path.run.machine = std::move(run.machine);
  path.busiest_thread = survey.busiest_thread();
  return path;
}

std::optional<StepInterval> layout_interval(const ParallelJob& job, const FoldedPath& path, const FoldedJob& outcome) {
  const ModelParallel& p = job.recipe.parallel;
  const JobKind kind = p.tensor * p.pipeline > 1                                   ? JobKind::model_parallel
                       : job.data() == 1                                           ? JobKind::one_gpu
                       : p.distributed_optimizer || divides_parameters(job.recipe) ? JobKind::sharded
                                                                                   : JobKind::data_parallel;
  return step_interval(path.run, path.segments, outcome.step_time, kind, path.busiest_thread);
}

}  // namespace memwall
