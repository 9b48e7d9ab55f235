// Opens a run file as a viewer does, to find out whether that goes well: for a process that may crash.
#pragma once

#include <filesystem>

namespace memwall {

// Reads all that HDF5 needs to find any row of any column, and what the first picture of a run shows. Throws
// InputError.
void probe_run(const std::filesystem::path& path);

}  // namespace memwall
