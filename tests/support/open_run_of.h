// A trace, simulated and open in the viewer's model, without a file: for tests of gui/.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gui/model/open_run.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {

inline OpenRun open_run_of(std::shared_ptr<const Run> run, const std::string& name = "run.h5") {
  OpenRun open{name, name, source_of(std::move(run)), {}, {}, {}};
  open.spans = std::make_shared<SpanCache>(open.source);
  return open;
}

inline OpenRun open_run_of(Trace trace, const Machine& machine, const std::string& name = "run.h5") {
  return open_run_of(std::make_shared<const Run>(simulate_and_record(std::move(trace), machine, {})), name);
}

}  // namespace memwall::gui
