// Quantities as sentences and tables name them: a unit that fits, four figures at most; a word in its number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/units.h"

namespace memwall {

std::string human_time(Duration duration);        // "347.0 ms"
std::string human_time(double seconds);           // the same, however long
std::string human_bytes(Bytes bytes);             // "39.34 GB" (1 GB = 1e9 B)
std::string human_rate(double bytes_per_second);  // "3.350 TB/s"
// "1 op", "1,234 ops"; `plural` where it is not the word with an s.
std::string counted_text(std::uint64_t number, std::string_view word, std::string_view plural = "");
// For the verb behind it: "1 op is", "2 ops are".
inline const char* by_number(std::uint64_t number, const char* one, const char* several) {
  return number == 1 ? one : several;
}

}  // namespace memwall
