// The tables of an Nsight Systems export as the records that libmemwall_inject would have written of the same program.
// nsys_import.h has the tables. Internal to the importer of these files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "models/workload/import/cupti/cupti_records.h"

namespace memwall {

// Of one process: captured_processes.h says which. Throws InputError naming file, table, found and expected, and as
// choose_process does.
CuptiRecords read_nsys_records(const std::filesystem::path& path, std::optional<std::uint32_t> rank = {});

}  // namespace memwall
