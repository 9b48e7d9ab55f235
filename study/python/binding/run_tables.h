// A run as tables: its ops, storages, and what happened when. Times are seconds from the start of the run.
#pragma once

#include <optional>
#include <string>

#include "study/python/binding/column_table.h"
#include "traces/run/run.h"

namespace memwall {

// One row per op, with the columns of `memwall export --to csv` (traces/run/export/export_csv.h) and times in
// microseconds as there; what an op has not is null.
ColumnTable op_table(const Run& run);

// lane, kind ("call", "work"), op, name, phase, begin_s, end_s: calls of each host thread, work of each stream, in the
// order of the ops.
ColumnTable timeline_table(const Run& run);

// storage, bytes, kind, label, preexisting.
ColumnTable storage_table(const Run& run);

// storage, tier, begin_s, end_s, bytes, kind, label: where each storage was, and when. Throws UsageError where the run
// keeps nothing over time.
ColumnTable residency_table(const Run& run);

// time_s, allocated_bytes, requested_bytes, reserved_bytes of a tier, each valid until the next. Throws UsageError for
// an unknown tier, and as residency_table does.
ColumnTable memory_table(const Run& run, const std::string& tier);

// time_s, bytes_per_s of a link, each valid until the next. Throws as memory_table does.
ColumnTable link_table(const Run& run, const std::string& link);

// storage, bytes, kind, label, begin_s, end_s: what lives in a tier at an instant, largest first; nothing: at its peak.
// Throws as memory_table does.
ColumnTable live_table(const Run& run, const std::string& tier, const std::optional<double>& seconds);

}  // namespace memwall
