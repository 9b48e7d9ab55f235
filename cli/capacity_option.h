// What several verbs take as --capacity.
#pragma once

#include <string>

#include "sim/units.h"

namespace memwall {

// "40GiB" in bytes, from 1 to 2^60. Throws UsageError.
Bytes parse_capacity(const std::string& text);

}  // namespace memwall
