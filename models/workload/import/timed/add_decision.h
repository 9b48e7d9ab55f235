// How an importer says what it concluded: once for `import --explain`, once for the trace's notes.
// Internal to the importers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "models/workload/import/importer.h"

namespace memwall {

// `sentence` ends with a full stop. Covered and of: see Decision.
inline void add_decision(ImportedStep& step, std::string subject, std::string sentence, std::uint64_t covered = 0,
                     std::uint64_t of = 0) {
  step.trace.notes.push_back(sentence);
  step.decisions.push_back({std::move(subject), std::move(sentence), covered, of});
}

}  // namespace memwall
