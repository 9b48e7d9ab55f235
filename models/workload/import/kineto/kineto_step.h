// A Kineto capture as a step, with the ExecutionTrace of the same run where there is one.
#pragma once

#include <cstdint>
#include <filesystem>

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/timed/imported_step.h"

namespace memwall {

bool recognizes_kineto(const FileHead& head);
ImportedStep import_kineto(const std::filesystem::path& path, const ImportSettings& settings);

// The rank that a Kineto file tells before its events, without reading those; -1 where it does not, or is none.
std::int64_t captured_rank(const std::filesystem::path& path);

}  // namespace memwall
