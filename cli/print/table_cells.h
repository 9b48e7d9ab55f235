// Cells that many tables have: a size, a count.
#pragma once

#include "cli/print/format.h"
#include "cli/print/table.h"

namespace memwall {

inline Cell bytes_cell(Bytes bytes) { return number_cell(human_bytes(bytes), std::to_string(bytes)); }
inline Cell count_cell(std::uint64_t count) { return number_cell(grouped_text(count), std::to_string(count)); }

}  // namespace memwall
