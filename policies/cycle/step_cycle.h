// A training step as one turn of a cycle that repeats: slots (the kernels of the main stream, in their order), the
// storages that they touch, and the gaps between touches, in which a storage could be away.
//
// What lives across turns has gaps that wrap around. Slots of a gap are counted on from the turn in which it begins:
// slot K + 3 of a cycle of K slots is slot 3 of the next turn.
#pragma once

#include <boost/container/small_vector.hpp>

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/units.h"

namespace memwall {

struct CycleSlot {
  Duration time{};  // from its start to the start of the next slot, with unlimited memory
  Duration work{};  // of the device alone; <= time, but for what the simulation's rounding makes of it
};

struct CycleTouch {
  std::uint32_t slot = 0;
  bool reads = false, writes = false;
  bool goes_on = false;  // into the next slot, as another stream uses it between the two
};

// Most storages have few: programs are copied thousands of times while re-runs are chosen.
using CycleTouches = boost::container::small_vector<CycleTouch, 4>;

struct CycleStorage {
  Bytes held = 0;                      // of its block in device memory
  Bytes moved = 0;                     // that a copy of it carries; <= held
  std::uint32_t first = 0, last = 0;   // slots in which it lives, inclusive
  bool from_before = false;            // lives when the turn begins
  bool to_next = false;                // lives when the turn ends
  bool across = false;                 // what ends the turn is what begins the next: gaps wrap. Implies both above.
  bool fixed = false;                  // may not be moved
  CycleTouches touches;                // ascending, one per slot at most
};

struct CycleProgram {
  std::vector<CycleSlot> slots;
  std::vector<CycleStorage> storages;
};

struct CycleGap {
  std::uint32_t storage = 0;
  std::uint32_t touch = 0;       // of the storage: the one before it; kBeforeAll: none
  std::uint32_t version = 0;     // gaps of one storage with equal content have equal versions, distinct over all
  std::int32_t written = 0;      // the content is there from the end of this slot on; < 0: of the turn before
  std::int32_t begin = 0, end = 0;  // away in slots begin <= slot < end; the next touch is in slot `end`. 0 <= begin < K
  bool needs_copy = true;        // false: the next touch overwrites all of it, or there is none, or it never changes
  bool needs_content = true;     // false: the next touch overwrites all of it
  bool returns = true;           // false: nothing touches it before it is given back
  static constexpr std::uint32_t kBeforeAll = 0xffffffff;
};

class StepCycle {
 public:
  // REQUIRES: at least one slot; storages' slots are of the program.
  explicit StepCycle(CycleProgram program);

  std::uint32_t size() const { return static_cast<std::uint32_t>(program_.slots.size()); }
  const std::vector<CycleSlot>& slots() const { return program_.slots; }
  const std::vector<CycleStorage>& storages() const { return program_.storages; }
  const std::vector<CycleGap>& gaps() const { return gaps_; }  // ascending by storage and begin
  std::uint32_t versions() const { return versions_; }
  // By slot: bytes of all blocks that live in it.
  const std::vector<Bytes>& live() const { return live_; }
  Bytes peak() const;
  // By slot: the least that its touched and its unmovable storages take. No budget below the largest can be kept
  // without computing again in pieces.
  std::vector<Bytes> least() const;
  // By slot: what lives there without the storages that are away in the gaps that it says.
  std::vector<Bytes> live_without(const std::function<bool(const CycleGap&)>& is_away) const;

  // The start of a slot with unlimited memory; of slots of later turns, too.
  Time start(std::int64_t slot) const;
  Duration turn() const { return starts_.back(); }

 private:
  void find_gaps(std::uint32_t storage);

  CycleProgram program_;
  std::vector<CycleGap> gaps_;
  std::uint32_t versions_ = 0;
  std::vector<Bytes> live_;
  std::vector<Time> starts_;  // and the end of the last
};

}  // namespace memwall
