#include "gui/model/run_analysis.h"

#include "sim/ranks.h"

namespace memwall::gui {
namespace {

constexpr double kShareOfLoading = 0.5;  // of the time of analyse()

void reach(const LoadProgress& progress, double share) {
  if (progress && !progress(share)) throw LoadCancelled{};
}

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

void add_classes(RunAnalysis& analysis, std::uint16_t rank) {
  const Run& run = *analysis.run;
  const bool alone = rank_count(run.trace) == 1;
  analysis.classes.push_back(class_timeline(run, alone ? analysis.path : critical_path_of_rank(run, rank), rank));
  analysis.class_sums.emplace_back(analysis.classes.back());
  analysis.path_sums.emplace_back(analysis.path_of(rank));
}

}  // namespace

std::shared_ptr<const RunAnalysis> analyse(const RunSource& source, const LoadProgress& progress) {
  auto analysis = std::make_shared<RunAnalysis>();
  analysis->run = source.whole([&](double done) { return !progress || progress(done * kShareOfLoading); });
  const Run& run = *analysis->run;
  const auto ranks = static_cast<std::uint16_t>(rank_count(run.trace));
  const auto after = [&](std::size_t stages) {
    reach(progress, kShareOfLoading + (1 - kShareOfLoading) * static_cast<double>(stages) / (ranks + 2.0));
  };
  after(0);
  analysis->path = critical_path(run);
  analysis->on_path = ops_on(analysis->path, run.trace.ops.size());
  analysis->rank_paths = by_rank(analysis->path, run.trace, ranks);
  after(1);
  for (std::uint16_t rank = 0; rank < ranks; ++rank) {
    add_classes(*analysis, rank);
    after(rank + std::size_t{2});
  }
  analysis->summary = summarize(run);
  reach(progress, 1);
  return analysis;
}

}  // namespace memwall::gui
