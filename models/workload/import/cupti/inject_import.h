// Captured CUDA programs (.mwi): what libmemwall_inject recorded, as a trace (cupti_import.h).
#pragma once

#include <filesystem>
#include <string>

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/cupti/cupti_import.h"

namespace memwall {

// Throws InputError naming file, byte, what was found and expected; UsageError where no range has the given name.
CuptiCapture read_inject(const std::filesystem::path& path, const std::string& step_range = "");

bool recognizes_inject(const FileHead& head);
ImportedStep import_inject(const std::filesystem::path& path, const ImportSettings& settings);

}  // namespace memwall
