// What all ranks of a job do and take together, as the JSON of a run has it (docs/run_json.md).
#pragma once

#include "sim/json_text.h"
#include "traces/run/analysis/job_totals.h"

namespace memwall {

// The key "job" with its object.
void write_job(JsonText& json, const JobTotals& job);

}  // namespace memwall
