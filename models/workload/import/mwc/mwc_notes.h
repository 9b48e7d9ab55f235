// What an imported step says about itself: counts against the file, and what was concluded.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/workload/import/mwc/mwc_records.h"
#include "models/workload/import/timed/decision.h"

namespace memwall {

struct MwcCounts {
  std::array<std::uint64_t, kMwcRecordTypes> records{};
  std::uint64_t kernels = 0;              // launched by ops
  std::uint64_t several = 0;              // ops that launch more than one
  std::uint64_t without_kernel = 0;       // ops that left no trace op
  std::uint64_t priceless = 0;            // kernel ops without FLOPs and bytes
  std::uint64_t random = 0;               // ops that draw random numbers
  std::uint64_t measured = 0;             // device ops with a duration
  std::uint64_t unmeasured = 0;           // device ops without
  std::uint64_t unwritten_reads = 0;      // reads of what nobody has written, by ops that write it
  std::uint64_t saves = 0;                // storages that ops keep for their backward, and use
  std::uint64_t saves_elsewhere = 0;      // likewise, of which the op itself uses nothing
  std::uint64_t without_original = 0;     // ops of phase recompute that do not say what they repeat
  std::uint64_t waits_without_event = 0;  // for events that nothing has recorded
  std::uint64_t shared_frees = 0;         // of storages that other streams use, too
  std::uint64_t hand_overs = 0;
  std::vector<std::pair<std::string, std::uint32_t>> groups;  // of collectives, with their ranks
};

// "Records in the file: 12 storages, ..."
std::string records_line(const MwcCounts& counts);
// What was concluded, with its coverage.
std::vector<Decision> mwc_decisions(const MwcCounts& counts);
// Sentences for Trace::notes: those decisions, and what else the file says.
NoteList mwc_notes(const MwcHeader& header, const MwcCounts& counts,
                                   const std::vector<Decision>& decisions);

}  // namespace memwall
