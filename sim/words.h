// Figures and lists as words in a sentence; sizes and times as sim/human_text.h writes them.
#pragma once

#include <string>
#include <vector>

namespace memwall {

std::string share_words(double share);  // "60 %", "8.5 %"
// What `now` is against `before`: "148.9 ms instead of 120.0 ms (+24 %)"; alone where they are equal.
std::string changed_words(const std::string& now, const std::string& before, double now_value, double before_value);

// Of a time that people wait or plan for: "42 s", "6.5 min", "13 h", "43 days", "12 years".
std::string span_words(double seconds);

std::string enumerated(const std::vector<std::string>& parts);  // "a, b and c"

}  // namespace memwall
