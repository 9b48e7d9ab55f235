// What of many tables is shown first, and what with --full.
#pragma once

#include <string>
#include <vector>

#include "cli/print/table.h"

namespace memwall {

// For people: tables without Table::detail, of the rest the first Table::screen_rows rows, and a line that says what
// --full shows beside them. All of it where `full`, and for programs (json, csv).
std::string screen_text(std::vector<Table> tables, Format format, bool full);

}  // namespace memwall
