// How a plan's file says what it is. Internal to traces/plan.
#pragma once

#include <cstdint>

namespace memwall {

inline constexpr const char* kPlanFormat = "memwall-plan";
inline constexpr std::uint32_t kPlanVersion = 1;

}  // namespace memwall
