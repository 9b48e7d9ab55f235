// Numbers for people: a unit that fits, four figures at most.
#pragma once

#include <string>

#include "sim/number_text.h"
#include "sim/units.h"

namespace memwall {

std::string human_time(Duration duration);        // "347.0 ms"
std::string human_time(double seconds);           // the same, however long
std::string human_bytes(Bytes bytes);             // "39.34 GB" (1 GB = 1e9 B)
std::string human_rate(double bytes_per_second);  // "3.35 TB/s"

// For CSV and JSON.
inline std::string plain_seconds(Duration d) { return plain_number(to_seconds(d)); }

}  // namespace memwall
