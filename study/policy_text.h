// The text of a --policy value, put together.
#pragma once

#include <string>

namespace memwall {

// "plan" and "budget=8GiB": "plan:budget=8GiB"; behind other parameters they follow a comma. "" changes nothing.
inline std::string with_parameters(const std::string& policy, const std::string& parameters) {
  if (parameters.empty()) return policy;
  return policy + (policy.find(':') == std::string::npos ? ":" : ",") + parameters;
}

}  // namespace memwall
