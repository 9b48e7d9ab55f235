// Small cycles written down slot by slot, for tests of policies/cycle whose numbers are worked out by hand.
#pragma once

#include <vector>

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/step_cycle.h"

namespace memwall {

constexpr Bytes kGB = 1'000'000'000;

// Slots of whole seconds.
inline CycleProgram slots_of_seconds(const std::vector<int>& seconds) {
  CycleProgram program;
  for (const int time : seconds) program.slots.push_back({from_seconds(time), from_seconds(time)});
  return program;
}

inline CycleTouch reads_in(std::uint32_t slot) { return {slot, true, false}; }
inline CycleTouch writes_in(std::uint32_t slot) { return {slot, false, true}; }
inline CycleTouch updates_in(std::uint32_t slot) { return {slot, true, true}; }

// Lives from its first touch to its last.
inline CycleStorage within_turn(Bytes bytes, std::vector<CycleTouch> touches) {
  CycleStorage s;
  s.held = s.moved = bytes;
  s.first = touches.front().slot;
  s.last = touches.back().slot;
  s.touches.assign(touches.begin(), touches.end());
  return s;
}

inline CycleStorage across_turns(Bytes bytes, std::uint32_t slots, std::vector<CycleTouch> touches) {
  CycleStorage s;
  s.held = s.moved = bytes;
  s.across = s.from_before = s.to_next = true;
  s.last = slots - 1;
  s.touches.assign(touches.begin(), touches.end());
  return s;
}

// One path without latency; bytes per second in each direction.
inline CycleLinks one_path(double out_rate, double in_rate) {
  CyclePath path;
  path.out_rate = out_rate, path.in_rate = in_rate;
  path.room = Bytes{1} << 60;
  return {{path}, out_rate, in_rate};
}

}  // namespace memwall
