// What a frame of the canvas shows. The same state, theme, size and spans in memory (SpanCache) give the same picture.
#pragma once

#include <memory>
#include <vector>

#include "gui/model/open_run.h"
#include "gui/model/row_list.h"
#include "gui/model/run_comparison.h"
#include "gui/model/selection.h"
#include "gui/model/viewport.h"
#include "traces/run/analysis/device_occupancy.h"

namespace memwall::gui {

struct CanvasState {
  std::vector<OpenRun> runs;                        // one, or two to compare
  std::shared_ptr<const RunComparison> comparison;  // null until it is worked out
  RowList rows;
  Viewport viewport{TimeRange{}};
  double scroll = 0;  // logical pixels of rows above the upper edge
  Selection selection;
  std::vector<Bookmark> bookmarks;
  std::vector<OpRef> found;  // of a search, ascending: marked in their lanes
  bool show_path = false;    // highlight the critical path, dim the rest
  MemoryClock clock = MemoryClock::host;  // of the memory of tiers
  bool show_legend = true;                // below the canvas
  // The second run's times are drawn this much later, so that an op stands below its counterpart.
  Duration shift{};

  // The range of all runs as they are drawn: a second run that is shifted earlier begins before 0.
  TimeRange whole() const;
};

}  // namespace memwall::gui
