// The figures of runs, for papers: what `memwall render` writes and the viewer exports. The same
// functions, so the same bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/time_range.h"
#include "traces/figure/figure.h"
#include "traces/run/analysis/device_occupancy.h"
#include "traces/run/run_source.h"

namespace memwall::gui {

// "timeline", "memory", "tiers", "links", "ranks", "pipeline", "compare".
const std::vector<std::string>& run_figure_names();
// Does the view draw a part of a run where a range is given? The others tell of whole runs.
bool draws_ranges(const std::string& view);

struct RunFigureRequest {
  std::string view = "timeline";
  std::string tier = "hbm";        // of "memory"
  std::optional<TimeRange> range;  // default: everything. Only where draws_ranges(view)
  std::vector<std::string> lanes;  // of "timeline": titles, in the order of the picture; default: all
  MemoryClock clock = MemoryClock::host;  // of "memory"; on the device's of runs with has_device_clock alone
};

// "gpt on h100, checkpoint:mode=full": trace, machine, policies and pager.
std::string headline_of(const Run& run);

// Titles say the range, axes keep the times of the run. Of several runs the policies tell them apart (run_label.h),
// `files` only where those do not.
// REQUIRES: at least one run and as many files; one, unless the view is "compare". Throws UsageError for an unknown
// view, tier or lane, for a range, lanes or a clock that the view has not, for a range that is empty or outside the
// run, for the device's clock of a run that does not tell it, and for the ranks of a run that holds one.
Figure run_figure(const std::vector<const Run*>& runs, const std::vector<std::string>& files,
                  const RunFigureRequest& request);

// The view "timeline" of a run that is read in parts: the same picture, and no more in memory than is drawn and the
// spans of the lanes that share rows (copies, moves), which are read whole. Throws as run_figure, InputError where the
// file turns out to be damaged, and LoadCancelled. REQUIRES: request.view is "timeline".
Figure run_timeline(const RunSource& run, const RunFigureRequest& request, const LoadProgress& progress = {});

// A part of the run, as people write it:
//   step:2        the second step, as the summary lists them (of all ranks, where there are several); step:2-3; or by
//                 its name: step:ProfilerStep#7
//   12ms:15ms     between two instants; 12ms: and :15ms reach to the end and from the beginning. s, ms, us, ns, ps
//   op:120-180    from the first begin to the last end of these ops, counted from 0; op:120
//   peak:2ms      2 ms around the highest memory of `tier`, by `clock`
// The result lies within the run and is not empty. Throws UsageError that says what is expected, and how many steps or
// ops there are.
TimeRange parse_range(const std::string& text, const Run& run, const std::string& tier = "hbm",
                      MemoryClock clock = MemoryClock::host);
TimeRange parse_range(const std::string& text, const RunSource& run, const std::string& tier = "hbm");

}  // namespace memwall::gui
