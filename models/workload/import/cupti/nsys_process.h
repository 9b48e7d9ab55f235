// Which process of an Nsight Systems export is imported.
// Internal to the importer of these files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "models/workload/import/bytes/sqlite_database.h"

namespace memwall {

struct NsysProcess {
  std::int64_t global = 0;  // as rows name it (globalPid); 0: rows name none
  std::string sentence;     // of ProcessChoice
};

// As choose_process (captured_processes.h), by the device work of each, or by calls where none has any.
NsysProcess choose_nsys_process(const SqliteDatabase& database, const std::filesystem::path& path,
                                std::optional<std::uint32_t> rank);

}  // namespace memwall
