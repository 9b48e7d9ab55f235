// Lists of numbers as the profiler writes the values of arguments.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace memwall {

// "[2, -1]" or "2": the numbers; nothing where the text is not all numbers.
inline std::optional<std::vector<std::int64_t>> number_list(std::string_view text) {
  std::vector<std::int64_t> found;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    if (*at == '[' || *at == ']' || *at == ',' || *at == ' ') {
      ++at;
      continue;
    }
    std::int64_t n = 0;
    const auto [stop, error] = std::from_chars(at, end, n);
    if (error != std::errc{}) return std::nullopt;
    found.push_back(n);
    at = stop;
  }
  return found;
}

}  // namespace memwall
