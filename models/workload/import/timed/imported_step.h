// What every importer takes beside a file, and what it gives: a step as a trace, and what was concluded on the way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/workload/import/timed/decision.h"
#include "models/workload/import/timed/rank_capture.h"
#include "models/workload/operator_calls.h"
#include "sim/trace/trace.h"
#include "sim/units.h"

namespace memwall {

// What the user said beside the file; empty = not said.
struct ImportSettings {
  std::filesystem::path execution_trace;  // ExecutionTrace of the same run
  std::string step_range;                 // name of the NVTX ranges around steps
  std::optional<std::uint32_t> rank;      // of a file of several: which one (captured_processes.h)
};

struct ImportedStep {
  Trace trace;                               // sound; Trace::machine is "" where the GPU below says it
  std::vector<std::string> report;           // what the file holds; what was concluded stands in trace.notes
  std::vector<Decision> decisions;           // all that was concluded, for `import --explain`
  NoteKinds note_kinds;                      // of trace.notes that are no decision's
  std::vector<std::filesystem::path> files;  // that were read
  std::string gpu;                           // as the file names the device; "" = unknown
  Bytes gpu_memory = 0;                      // 0 = unknown
  OperatorCalls calls;                       // of PyTorch's operators, where the capture says them
  std::optional<RankCapture> rank;           // of a capture with times: what several are joined by (rank_join.h)
};

// One conclusion, once for `import --explain` and once for the trace's notes. `sentence` ends with a full stop.
// Covered and of: see Decision.
inline void add_decision(ImportedStep& step, std::string subject, std::string sentence, std::uint64_t covered = 0,
                         std::uint64_t of = 0, NoteKind kind = NoteKind::counted) {
  step.trace.notes.push_back(sentence);
  step.decisions.push_back({std::move(subject), std::move(sentence), covered, of, kind});
}

}  // namespace memwall
