// A run that is open in the viewer: its source, and what has been worked out of it so far.
//
// Opening gives the source and the cache; the rest is loaded in the background and set when it is
// there. A view shows what it has and says what it waits for.
#pragma once

#include <memory>
#include <string>

#include "gui/model/residency_history.h"
#include "gui/model/run_analysis.h"
#include "gui/model/span_cache.h"
#include "gui/model/time_range.h"

namespace memwall::gui {

struct OpenRun {
  std::string path, name;  // name: without folders
  std::shared_ptr<const RunSource> source;
  std::shared_ptr<SpanCache> spans;
  std::shared_ptr<const ResidencyHistory> history;  // who lives where and when; null until it is loaded
  std::shared_ptr<const RunAnalysis> analysis;      // critical path and accounting; null until it is loaded
  // The history on the device's clock; null until it is asked for and loaded.
  std::shared_ptr<const ResidencyHistory> device_history = nullptr;
  std::string label{};  // beside another run: what tells them apart (run_label.h)

  const std::string& title() const { return label.empty() ? name : label; }
  const RunOutline& outline() const { return source->outline(); }
  TimeRange whole() const { return {Time{}, outline().run.result.end}; }
};

// Throws InputError, LoadCancelled. The history and the analysis are not loaded.
OpenRun open_in_viewer(const std::string& path, const LoadProgress& progress = {});

}  // namespace memwall::gui
