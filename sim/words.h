// Figures as words in a sentence: sizes in decimal units, four digits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/units.h"

namespace memwall {

std::string bytes_words(Bytes bytes);   // "2.909 GB"
std::string time_words(Duration time);  // "148.9 ms"
std::string share_words(double share);  // "60 %", "8.5 %"
// What `now` is against `before`: "148.9 ms instead of 120.0 ms (+24 %)"; alone where they are equal.
std::string changed_words(const std::string& now, const std::string& before, double now_value, double before_value);

std::string plural_text(std::uint64_t count, const std::string& noun);  // "1 step", "2,000 steps"
std::string enumerated(const std::vector<std::string>& parts);  // "a, b and c"

}  // namespace memwall
