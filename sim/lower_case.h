// Names that people type in any case.
#pragma once

#include <string>

namespace memwall {

// ASCII letters alone; whatever the locale.
inline std::string in_lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace memwall
