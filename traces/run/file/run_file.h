// The run file: a Run on disk, in HDF5 behind a user block that holds magic,
// version, length and checksums. A stranger reads it with h5py: see FORMAT.md.
//
// A piece's checksum is verified before HDF5 sees a byte of it, and every index is checked after: a damaged, truncated
// or foreign file, or one of another version, is an InputError with a sentence. Pieces that are not read are
// not verified. Same run, same bytes.
#pragma once

#include <filesystem>

#include "traces/run/run_source.h"

namespace memwall {

// Written beside the target and renamed; on an error nothing is left. Throws UsageError if the
// place cannot be written.
void write_run(const Run& run, const std::filesystem::path& path);

// Throws InputError.
Run read_run(const std::filesystem::path& path);

// What ops did and when, for comparing: without uses, residency, memory and rates of links; of ops what names, aligns
// and accounts for them, of storages bytes, place and label. What is left out is empty or 0; what is read is verified
// and checked as read_run does. Throws InputError, and LoadCancelled.
Run read_run_ops(const std::filesystem::path& path, const LoadProgress& progress = {});

// Does the file begin like a run file? For verbs that take several kinds of file. Never throws.
bool is_run_file(const std::filesystem::path& path);

}  // namespace memwall
