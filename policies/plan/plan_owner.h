// Whose plan a planner gives where another's is better than all of its own that were tried: a sentence at the end of
// its note, and how it is read again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memwall {

namespace plan_owner {
inline constexpr std::string_view kBefore = "This plan is that of ", kBehind = ", the best of those that were tried.";
}  // namespace plan_owner

inline std::string plan_owner_sentence(const std::string& planner) {
  return std::string(plan_owner::kBefore) + planner + std::string(plan_owner::kBehind);
}

// "" where no note says it: the plan is the policy's own. `notes`: of the planned trace.
inline std::string plan_owner_in(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    const std::size_t at = note.find(plan_owner::kBefore);
    if (at == std::string::npos) continue;
    const std::size_t first = at + plan_owner::kBefore.size();
    return note.substr(first, note.find(plan_owner::kBehind, first) - first);
  }
  return "";
}

}  // namespace memwall
