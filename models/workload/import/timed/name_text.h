// Names of operators, calls and kernels, taken apart.
#pragma once

#include <cstddef>
#include <string_view>

namespace memwall {

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "add" of "aten::add".
inline std::string_view base_name(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

}  // namespace memwall
