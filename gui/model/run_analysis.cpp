#include "gui/model/run_analysis.h"

#include "gui/model/load_progress.h"
#include "sim/trace/ranks.h"

namespace memwall::gui {
namespace {

constexpr double kShareOfLoading = 0.5;  // of the time of analyse()

// Gaps and latencies lie before an op or between two: no span shows them.
std::vector<bool> ops_on(const std::vector<PathSegment>& path, std::size_t ops) {
  std::vector<bool> on_path(ops, false);
  for (const PathSegment& segment : path) {
    const bool of_op = segment.part != PathPart::gap && segment.part != PathPart::latency;
    if (of_op && segment.op < ops) on_path[segment.op] = true;
  }
  return on_path;
}

// Where nothing is known (kNoOp) nobody is: time before the first cause.
std::vector<std::vector<PathSegment>> by_rank(const std::vector<PathSegment>& path, const Trace& trace,
                                              std::size_t ranks) {
  if (ranks == 1) return {};
  std::vector<std::vector<PathSegment>> paths(ranks);
  for (const PathSegment& segment : path)
    if (segment.op < trace.ops.size()) paths[rank_of(trace, trace.ops[segment.op])].push_back(segment);
  return paths;
}

std::vector<ClassSums> sums_of_paths(const RunAnalysis& analysis, std::size_t ranks) {
  std::vector<ClassSums> sums;
  for (std::size_t rank = 0; rank < ranks; ++rank) sums.emplace_back(analysis.path_of(rank));
  return sums;
}

}  // namespace

std::shared_ptr<const RunAnalysis> analyse(const RunSource& source, const LoadProgress& progress) {
  auto analysis = std::make_shared<RunAnalysis>();
  analysis->run = source.whole([&](double done) { return !progress || progress(done * kShareOfLoading); });
  const Run& run = *analysis->run;
  const std::size_t ranks = rank_count(run.trace);
  const auto after = [&](double stages) { reach(progress, kShareOfLoading + (1 - kShareOfLoading) * stages / 4); };
  after(0);
  analysis->path = critical_path(run);
  analysis->on_path = ops_on(analysis->path, run.trace->ops.size());
  analysis->rank_paths = by_rank(analysis->path, run.trace, ranks);
  analysis->path_sums = sums_of_paths(*analysis, ranks);
  after(1);
  std::vector<std::vector<PathSegment>> alone;  // each rank's, never leaving it
  if (ranks == 1)
    analysis->classes.push_back(class_timeline(run, analysis->path));
  else
    alone = critical_paths_of_ranks(run);
  after(2);
  if (ranks > 1) analysis->classes = class_timelines(run, alone);
  for (const std::vector<ClassSpan>& spans : analysis->classes) analysis->class_sums.emplace_back(spans);
  after(3);
  analysis->summary = summarize(run, analysis->path, account(run, analysis->classes));
  reach(progress, 1);
  return analysis;
}

}  // namespace memwall::gui
