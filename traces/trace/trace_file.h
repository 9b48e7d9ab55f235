// The trace file, .mwt: a trace on disk, whole and exact. FORMAT.md describes it
// for those who read it from another language.
//
// Every field of a Trace survives the round trip, bit by bit. The same trace gives
// the same bytes (with the same version of zstd). A checksum covers the file, and is
// verified before anything else is believed.
#pragma once

#include <cstdint>
#include <filesystem>

#include "sim/trace/trace.h"

namespace memwall {

// The newest version of the format that this program writes and reads.
inline constexpr std::uint32_t kTraceFileVersion = 1;

// Replaces what is at `path` whole or not at all (files/file_writer.h).
// Throws UsageError if the place cannot be written. REQUIRES: check(trace) is empty.
void write_trace(const Trace& trace, const std::filesystem::path& path);

// Throws InputError, whose sentence names the file, for whatever is not a sound trace:
// unreadable, of another kind, newer, truncated, altered, or a program that cannot run
// (sim/trace/trace_check.h). Memory stays in proportion to what the file verifiably holds.
Trace read_trace(const std::filesystem::path& path);

// Do the first bytes of the file say that it is a trace file? False if it cannot be read.
bool is_trace_file(const std::filesystem::path& path);

}  // namespace memwall
