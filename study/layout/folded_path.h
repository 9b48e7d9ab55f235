// What a folded job waits for: its critical path, with the passes on it taken apart into what their operators wait for.
#pragma once

#include <optional>
#include <vector>

#include "study/layout/folded_job.h"
#include "traces/run/analysis/critical_path.h"
#include "traces/run/analysis/step_interval.h"

namespace memwall {

struct FoldedPath {
  Run run;                            // its trace holds the ops that segments name, and no program
  std::vector<PathSegment> segments;  // one behind the other, not in the order of their times
  double busiest_thread = 0;          // of the folded run, as PathSurvey says it

  // Of all segments, by class.
  Duration time_of(TimeClass of) const;
};

// Of so many micro-batches as were simulated for `outcome`. Throws what folded_job() throws.
FoldedPath folded_path(const ParallelJob& job, ChunkCostCache& costs, const FoldedJob& outcome);

// The interval in which 80 % of such steps lie, as step_interval() says it of the job written out: by the errors of
// prices along the path, and by what programs of this kind do otherwise. Nothing where it says none, and where only
// replays would give one (study/step_bounds.h).
std::optional<StepInterval> layout_interval(const ParallelJob& job, const FoldedPath& path, const FoldedJob& outcome);

}  // namespace memwall
