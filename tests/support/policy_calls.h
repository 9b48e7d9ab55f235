// A list of calls of every policy, with arguments that have a meaning for a small step.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace memwall {

// By the policy's name; at least one call of each, unless a comment says where it is tested instead.
const std::map<std::string, std::vector<std::string>>& policy_calls();

}  // namespace memwall
