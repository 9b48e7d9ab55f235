// Chakra execution traces as steps: durations where they were measured, work to be priced where not.
//
// chakra_graph.h reads the file, chakra_order.h sorts it, chakra_program.h makes the host's program of it, and where
// nodes list tensors derived_dataflow.h adds storages and their (derived) lives.
#pragma once

#include <filesystem>

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/timed/imported_step.h"

namespace memwall {

// Throw InputError naming file, node or byte, found and expected.
ImportedStep import_chakra_messages(const std::filesystem::path& path, const ImportSettings& settings);
ImportedStep import_chakra_json(const std::filesystem::path& path, const ImportSettings& settings);

}  // namespace memwall
