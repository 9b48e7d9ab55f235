// The parts of a text between separators.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace memwall {

// "a,,b" by ',': "a", "", "b"; of "" one, which is empty.
inline std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace memwall
