// Opens a run file first in a child process with limits of memory and time: a file whose checksums
// are right may still be made to make HDF5 crash, hang or eat memory, and then the child does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "traces/run/run_source.h"

namespace memwall::gui {

struct ProbeLimits {
  std::uint64_t bytes = std::uint64_t{2} << 30;  // of address space
  double seconds = 30;                           // of processor time, and twice that by the clock
};

// Nothing if `program` (memwall-probe) opened the file, else the reason in a sentence: what the child said, or that it
// crashed, ran out of memory or out of time. Throws LoadCancelled (the child is ended), UsageError if it cannot be
// started.
std::optional<std::string> refused_by_probe(const std::filesystem::path& program, const std::filesystem::path& file,
                                            const ProbeLimits& limits = {}, const LoadProgress& progress = {});

// How the child ends, besides 0: the reason is on stderr, or there was no memory for one.
inline constexpr int kProbeRefused = 6, kProbeOutOfMemory = 7;

// The child's work: sets its limits, opens the file, touches every table, column header and chunk index, and reads what
// a first picture needs. 0, kProbeRefused after a sentence on stderr, or kProbeOutOfMemory.
int probe_main(const std::filesystem::path& file, const ProbeLimits& limits);

}  // namespace memwall::gui
