// A study of a snapshot as tables, and as one JSON object.
#pragma once

#include <string>
#include <vector>

#include "study/memory_study.h"
#include "cli/print/table.h"

namespace memwall {

// `file`: as it was given. `limit`: rows of the lists.
std::vector<Table> memory_tables(const MemoryStudy& study, const std::string& file, std::size_t limit);

// Indented, keys in a fixed order, sizes in bytes. The fields are described in docs/memory.md.
std::string memory_json(const MemoryStudy& study, const std::string& file);

// What does not fit and by how much, for stderr; "" where everything fits.
std::string missing_sentence(const MemoryStudy& study);

}  // namespace memwall
