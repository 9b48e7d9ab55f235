// Numbers for people (sim/human_text.h) and, beside them, for CSV and JSON.
#pragma once

#include <string>

#include "sim/human_text.h"
#include "sim/number_text.h"
#include "sim/units.h"

namespace memwall {

// For CSV and JSON.
inline std::string plain_seconds(Duration d) { return plain_number(to_seconds(d)); }

}  // namespace memwall
