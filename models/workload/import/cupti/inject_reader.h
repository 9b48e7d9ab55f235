// Reads .mwi files. libmemwall_inject writes them while a CUDA program runs; traces/capture/inject/FORMAT.md is the
// contract. Internal to the importer of these files.
#pragma once

#include <filesystem>
#include <string_view>

#include "models/workload/import/cupti/cupti_records.h"

namespace memwall {

// Opens a .mwi file: the first bytes of its header.
bool is_mwi(std::string_view head);

// Reads a file of any size as a stream, gzip or not. Throws InputError naming file, byte, what was found and expected;
// a file that ends inside a record is none: the program was killed.
CuptiRecords read_inject_records(const std::filesystem::path& path);

}  // namespace memwall
