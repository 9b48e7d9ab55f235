// What needs the whole run at once: its critical path and the accounting of every instant.
//
// Small runs get it when they open; of large ones (more than kSmallRun ops) only when someone asks,
// because it takes some 300 bytes of memory per op.
#pragma once

#include <memory>
#include <vector>

#include "traces/run/accounting.h"
#include "traces/run/critical_path.h"
#include "traces/run/run_source.h"
#include "traces/run/summary.h"

namespace memwall::gui {

inline constexpr std::uint64_t kSmallRun = 1'000'000;  // ops

struct RunAnalysis {
  std::shared_ptr<const Run> run;
  std::vector<PathSegment> path;                // of the whole run, ascending
  std::vector<bool> on_path;                    // by OpId: does work, a call or a wait of it lie on the path?
  std::vector<std::vector<ClassSpan>> classes;  // per rank: what every instant goes to
  RunSummary summary;
};

// Throws InputError, LoadCancelled: asked between the stages, each of which takes seconds per ten million ops.
std::shared_ptr<const RunAnalysis> analyse(const RunSource& source, const LoadProgress& progress);

}  // namespace memwall::gui
