// The name of a generated step with its settings: "llama3-8b:batch=2,sequence=4096".
#pragma once

#include <string>

namespace memwall {

// With a setting that replaces one of that key.
inline std::string with_setting(const std::string& network, const std::string& key, const std::string& value) {
  const std::size_t colon = network.find(':');
  std::string text = network.substr(0, colon) + ":";
  for (std::size_t at = colon; at != std::string::npos && at + 1 < network.size();) {
    const std::size_t end = network.find(',', at + 1);
    const std::string setting = network.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    if (!setting.starts_with(key + "=")) text += setting + ",";
    at = end;
  }
  return text + key + "=" + value;
}

}  // namespace memwall
