// The stages of a divided model as part of a run's JSON: the object `pipeline` of docs/run_json.md. Internal to
// traces/run/export.
#pragma once

#include "sim/json_text.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// REQUIRES: summary.pipeline.
void write_pipeline(JsonText& json, const RunSummary& summary);

}  // namespace memwall
