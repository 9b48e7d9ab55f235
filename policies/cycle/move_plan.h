// Which gaps of a cycle are spent away from the device, and when copies begin, memory is given up and asked for again.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/cycle/step_cycle.h"

namespace memwall {

struct PlannedMove {
  static constexpr std::int32_t kNoCopy = INT32_MIN;
  std::uint32_t gap = 0;   // index into StepCycle::gaps()
  std::uint8_t path = 0;   // index into CycleLinks::paths: where the copy lies
  // Slots, in the count of the gap. The copy out is issued when slot `copy` may start, at or before `drop`; kNoCopy: the
  // content need not be kept, never changes, or another move of the same version copies it earlier. From `drop` on it is
  // away, until `fetch`, at which memory is taken again and the copy back begins. begin <= drop < fetch <= end; where
  // nothing has to come back, fetch = end.
  std::int32_t copy = kNoCopy, drop = 0, fetch = 0;
};

struct MovePlan {
  std::vector<PlannedMove> moves;  // in the order in which copies out are issued where slots are equal
  // Indices into moves, in the order in which copies back are issued where slots are equal.
  std::vector<std::uint32_t> fetch_order;
};

// Is every copy issued behind the write of its content and at or before the first drop that relies on it, and every slot
// in the order that PlannedMove says?
bool is_sound(const StepCycle& cycle, const MovePlan& plan);

// By slot: bytes that live on the device.
std::vector<Bytes> live_under(const StepCycle& cycle, const MovePlan& plan);

}  // namespace memwall
