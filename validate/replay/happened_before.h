// What of a schedule is known to have ended when an op begins, whatever takes how long: by order within a stream or a
// host thread, by events, waits and hand-overs (Lamport's happened-before, as vector clocks).
//
// A lane is a stream, or behind the streams a host thread. A clock says how many ops of each lane have ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

using VectorClock = std::vector<std::uint32_t>;

// Has everything ended that `needed` counts?
bool covers(const VectorClock& clock, const VectorClock& needed);

class HappenedBefore {
 public:
  // `trace` must outlive it. REQUIRES: check(trace) is empty.
  explicit HappenedBefore(const Trace& trace);

  std::size_t lanes() const { return none_.size(); }
  const VectorClock& nothing() const { return none_; }

  // Of an op that uses storages: what has ended when it begins, and which of its lane's ops it is, counted from 1.
  // `known` is valid until the next call.
  struct Work {
    const VectorClock& known;
    std::size_t lane = 0;
    std::uint32_t index = 0;
  };
  // To be called for every op, in order. nullopt: it is neither work of the device nor host work.
  std::optional<Work> enter(OpId id);

  // What has ended when an op of the device begins that is the next to be entered.
  const VectorClock& before(const Op& op);
  // Later work of `stream` comes behind all that `other` has been given so far.
  void wait(std::uint16_t stream, std::uint16_t other);

 private:
  void await(const Op& op, VectorClock& host) const;

  const Trace& t_;
  const VectorClock none_;
  std::vector<VectorClock> hosts_, streams_, events_;  // an event that was never recorded: empty
  std::map<OpId, VectorClock> handed_;                 // by op that a hand-over names: its thread after it
};

}  // namespace memwall
