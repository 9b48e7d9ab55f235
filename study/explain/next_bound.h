// What binds next: up to which value more (or less) of a number shortens the step, what the step waits for there, and
// from which value on another number counts for more.
//
// The value is doubled (halved) until it no longer helps: another reason is the largest on the critical path, or the
// elasticity of the step time there is less than a twentieth of what it is now. Then the value is searched between by
// bisection. What is found is one such value: a condition that holds, ceases and holds again between two values looked
// at is missed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/explain/elasticity.h"

namespace memwall {

// Why more of a number is no longer worth it.
enum class StopReason : std::uint8_t {
  other_reason,  // another reason is the largest on the critical path
  little_left,   // the elasticity has fallen below kLittleLeft of what it is now
  not_within,    // neither up to kFarthest times (or its inverse)
  not_allowed    // neither up to the last value looked at that the number takes
};
std::string_view to_string(StopReason reason);

// kFound: how near a value is found, as a ratio. kRivals: how many other numbers are held against it.
inline constexpr double kLittleLeft = 0.05, kFarthest = 1024, kFound = 1.05;
inline constexpr std::size_t kRivals = 4;

struct NextBound {
  VariedNumber number{};
  bool more = true;          // more of it shortens the step; false: less of it
  double elasticity = 0;     // of the step time, now, in that direction
  std::string reason_now{};  // the largest on the critical path: "compute"; "" = not known
  StopReason stop = StopReason::not_within;
  double value = 0;           // the first that was found to stop, within kFound; else the last looked at
  double step_time = 0;       // there, seconds
  std::string reason_then{};  // there
  // From this value on the elasticity of another number of the machine is larger: one of the kRivals that are largest
  // now and no part of this one. Nothing where that is so nowhere up to `value`, or one is larger already.
  std::optional<double> overtaken_at{};
  std::string overtaken_by{};
};

// The largest part of a record's critical path, "copy". REQUIRES: it has all fields.
std::string largest_reason(const PointRecord& record);

// Of the machine's number or way of which more shortens the step most; of the one of which less does, counts aside
// (fewer multiprocessors would share the same peak rate); and of the scale of which less does; those that there are.
// `sensitivities`: of this scenario.
std::vector<NextBound> next_bounds(ScenarioPoints& points, const Scenario& scenario,
                                   const std::vector<Sensitivity>& sensitivities, double share);

}  // namespace memwall
