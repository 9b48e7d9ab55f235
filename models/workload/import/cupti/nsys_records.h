// The tables of an Nsight Systems export as the records that libmemwall_inject would have written of the same program.
// nsys_import.h has the tables. Internal to the importer of these files.
#pragma once

#include <filesystem>

#include "models/workload/import/cupti/cupti_records.h"

namespace memwall {

// Of the process whose device work took longest. Throws InputError naming file, table, found and expected.
CuptiRecords read_nsys_records(const std::filesystem::path& path);

}  // namespace memwall
