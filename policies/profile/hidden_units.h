// How many units of a plan hide: how many of them a step can take and be no longer than without them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "policies/profile/step_profile.h"
#include "sim/machine/pricer.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// What hides may make a step longer by one of so many parts of its time: a thousandth. Calls of the host and the order
// in which links serve copies move a step by a few microseconds whatever the plan; what is to be found are units that
// the device or a link has no idle time for.
inline constexpr std::int64_t kToleratedParts = 1000;

struct HiddenUnits {
  std::size_t units = 0, of = 0;  // the first `units` of so many hide
  Time without{}, with{};         // the ends of the simulation
  std::size_t more = 0;           // the next number of units that was tried, and does not hide; 0 where all do
  Time with_more{};
  // "4 of 12 units hide: 1.2 ms with them, 1.2 ms without (+0.01 %), 1.3 ms with one more (+8.3 %)". `word`: "unit".
  std::string sentence(const std::string& word, const std::string& plural) const;
};

// `plan_of(n)`: the plan for the first n units, in the order in which they are taken. Simulates log2(units) plans with
// unlimited memory. The time need not grow with every unit, so that this is the largest number which bisection finds,
// and it is within the tolerance. REQUIRES: the plans can be carried out.
HiddenUnits hidden_units(const StepProfile& profile, const Pricer& pricer, std::size_t units,
                         const std::function<MemoryPlan(std::size_t)>& plan_of);

}  // namespace memwall
