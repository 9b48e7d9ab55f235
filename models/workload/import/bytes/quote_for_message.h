// Text of a foreign file, made fit to stand in a message.
#pragma once

#include <string>
#include <string_view>

namespace memwall {

// In single quotes, unprintable bytes as '?', at most 60 characters and then "...".
inline std::string quote_for_message(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) result += c >= ' ' && c <= '~' ? c : '?';
  return result + (text.size() > kLongest ? "...'" : "'");
}

}  // namespace memwall
