// What needs the whole run at once: its critical path and the accounting of every instant.
//
// Small runs get it when they open; of large ones (more than kSmallRun ops) only when someone asks,
// because it takes some 300 bytes of memory per op (215 to 335 in tests/bench/analysis_bench.cpp, the run included).
#pragma once

#include <memory>
#include <vector>

#include "gui/model/class_sums.h"
#include "traces/run/analysis/accounting.h"
#include "traces/run/analysis/critical_path.h"
#include "traces/run/run_source.h"
#include "traces/run/analysis/summary.h"

namespace memwall::gui {

inline constexpr std::uint64_t kSmallRun = 4'000'000;  // ops: 1.2 GB, some seconds
inline constexpr double kAnalysisBytesPerOp = 300;     // memory that an analysis takes, about

struct RunAnalysis {
  std::shared_ptr<const Run> run;
  std::vector<PathSegment> path;                // of the whole run, ascending
  std::vector<bool> on_path;                    // by OpId: does work, a call or a wait of it lie on the path?
  std::vector<std::vector<ClassSpan>> classes;  // per rank: what every instant goes to
  std::vector<ClassSums> class_sums;            // of those
  // What of `path` lies on ops of one rank, per rank; empty where the run holds one, see path_of().
  std::vector<std::vector<PathSegment>> rank_paths;
  std::vector<ClassSums> path_sums;  // per rank, of path_of()
  RunSummary summary;

  // REQUIRES: rank < classes.size().
  const std::vector<PathSegment>& path_of(std::size_t rank) const {
    return rank_paths.empty() ? path : rank_paths[rank];
  }
};

// Throws InputError, LoadCancelled: asked between the stages, each of which takes seconds per ten million ops.
std::shared_ptr<const RunAnalysis> analyse(const RunSource& source, const LoadProgress& progress);

}  // namespace memwall::gui
