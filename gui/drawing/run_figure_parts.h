// The figures of runs one by one, and what they share. Internal to gui/drawing: run_figures.h chooses among them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/drawing/run_figures.h"
#include "traces/figure/instants.h"

namespace memwall::gui {

Figure timeline_figure(const Run& run, const std::optional<TimeRange>& range, const std::vector<std::string>& lanes);
// The same, block by block.
Figure timeline_figure(const RunSource& run, const std::optional<TimeRange>& range,
                       const std::vector<std::string>& lanes, const LoadProgress& progress);
Figure memory_figure(const Run& run, const RunFigureRequest& request);
Figure links_figure(const Run& run, const std::optional<TimeRange>& range);
// Throws UsageError of a run that holds one rank.
Figure ranks_figure(const Run& run);
// Throws UsageError of a run without stages or marks of their passes.
Figure pipeline_figure(const Run& run, const std::optional<TimeRange>& range);
Figure comparison_figure(const std::vector<const Run*>& runs, std::vector<std::string> labels);

// ", 12.3 ms to 15.6 ms", as exact as tells its ends apart; "" for the whole run.
std::string range_suffix(const std::optional<TimeRange>& range);
// The range, or the whole run.
TimeRange window_of(const Run& run, const std::optional<TimeRange>& range);
// Throws UsageError unless has_device_clock(run).
void require_device_clock(const Run& run);
// Where each step begins, with its rank where there are several.
std::vector<InstantMark> step_marks(const Run& run);
std::vector<InstantMark> step_marks(const Trace& trace, const std::vector<StepWindow>& steps);
// Index of a tier; of several ranks the first's have the names of the machine file: "hbm rank 0" is "hbm"
// (sim/machine/rank_machine.h). Throws UsageError.
std::size_t tier_of_figure(const Run& run, const std::string& tier);

}  // namespace memwall::gui
