// What CUPTI's records say about themselves, and what of them cannot be part of a trace, in sentences.
// Internal to the importers of CUPTI records.
#pragma once

#include <string>
#include <vector>

#include "models/workload/import/cupti/cupti_records.h"
#include "models/workload/import/cupti/nvtx_ranges.h"
#include "models/workload/import/timed/note_kind.h"

namespace memwall {

struct CuptiFindings {
  std::uint64_t kernels = 0, copies = 0, memsets = 0, whole_graphs = 0, graph_nodes = 0, unfinished_work = 0;
  std::uint64_t runtime_calls = 0, driver_calls = 0;  // kept
  std::uint64_t inner_calls = 0, unfinished_calls = 0, unknown_events = 0;
  std::uint64_t from_pool = 0, unknown_releases = 0, managed = 0;
  double managed_bytes = 0;
  NvtxRangeCounts ranges;
};

NoteList cupti_notes(const CuptiRecords& records, const CuptiFindings& found);

}  // namespace memwall
