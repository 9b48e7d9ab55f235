// Hosts in the JSON of a summary. Internal to traces/run.
#pragma once

#include <vector>

#include "sim/json_text.h"
#include "traces/run/analysis/summary.h"

namespace memwall {

// The keys `first_step_time_s`, `alone_step_time_s` and `contention`, where the summary has them.
void write_host_times(JsonText& json, const RunSummary& summary);
// The key `hosts`; nothing where there are none.
void write_hosts(JsonText& json, const std::vector<HostUse>& hosts);

}  // namespace memwall
