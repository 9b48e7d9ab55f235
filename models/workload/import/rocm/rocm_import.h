// Turns profiles of AMD's ROCm into a trace, by the rules for other records of a runtime (cupti_import.h).
//
// rocprofv3 writes a rocpd database or JSON; what is read of them say rocpd_reader.h and rocprof_json.h. A file may
// hold several processes: captured_processes.h says which one is imported.
#pragma once

#include <cstdint>
#include <optional>

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/cupti/cupti_import.h"

namespace memwall {

bool recognizes_rocpd(const FileHead& head);
bool recognizes_rocprof_json(const FileHead& head);

// Throws InputError naming file, table or member, found and expected; UsageError where no range has the given
// name, or there is no such rank.
CuptiCapture read_rocm(const std::filesystem::path& path, const std::string& step_range = "",
                       std::optional<std::uint32_t> rank = {});

ImportedStep import_rocm(const std::filesystem::path& path, const ImportSettings& settings = {});

}  // namespace memwall
