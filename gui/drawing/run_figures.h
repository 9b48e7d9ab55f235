// The figures of runs, for papers: what `memwall render` writes and the viewer exports. The same
// functions, so the same bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/time_range.h"
#include "traces/figure/figure.h"
#include "traces/run/run.h"

namespace memwall::gui {

// "timeline", "memory", "tiers", "links", "compare".
const std::vector<std::string>& run_figure_names();

struct RunFigureRequest {
  std::string view = "timeline";
  std::string tier = "hbm";        // of "memory"
  std::optional<TimeRange> range;  // default: everything. Not of "tiers" and "compare", which tell of whole runs
  std::vector<std::string> lanes;  // of "timeline": titles, in the order of the picture; default: all
};

// REQUIRES: at least one run and as many labels; one, unless the view is "compare". Throws UsageError for an unknown
// view, tier or lane.
Figure run_figure(const std::vector<const Run*>& runs, const std::vector<std::string>& labels,
                  const RunFigureRequest& request);

// "step:2" (counted from 1), "step:2-3", "12ms:15ms", "12ms:", ":15ms", "op:120-180", "peak:2ms" (around the peak of
// the tier). Throws UsageError that says what is expected, and how many steps or ops there are.
TimeRange parse_range(const std::string& text, const Run& run, const std::string& tier = "hbm");

}  // namespace memwall::gui
