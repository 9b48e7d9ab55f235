// A word as a shell reads it back.
#pragma once

#include <string>

namespace memwall {

// In single quotes, whatever it holds.
inline std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace memwall
