// A checker of plans of moves, written apart from policies/cycle: what happens in one turn of a step as a list of
// events, carried out turn after turn, with the content of every storage and of every copy followed by number.
//
// Shares no code with policies/cycle but the description of its links (cycle_links.h): neither how copies queue, nor
// what a gap or a version is. The device does one event after the other. It waits where a drop's content is not out yet
// and where what it touches is not back yet; copies of one path and direction follow each other, and paths share the
// links' rate evenly, up to their own. A copy's latency takes no part of the links.
#pragma once

#include <string>
#include <vector>

#include "policies/cycle/cycle_links.h"
#include "sim/units.h"

namespace memwall {

struct TurnStorage {
  Bytes held = 0, moved = 0;  // of its block; that a copy carries
  bool stays = false;         // what ends the turn is what begins the next
};

struct TurnTouch {
  std::uint32_t storage = 0;
  bool reads = false, writes = false;
};

// What the device computes once in a turn, and may compute again.
struct TurnWork {
  Duration time{};
  std::vector<TurnTouch> touches;  // of distinct storages
};

struct TurnEvent {
  enum class Kind { appear, give_back, copy, drop, fetch, work, again };
  static constexpr std::uint8_t kNoPath = 0xff;
  Kind kind = Kind::work;
  std::uint32_t storage = 0;           // but of work and again
  std::uint8_t path = kNoPath;         // copy, fetch; kNoPath: the fetch takes memory alone
  std::uint32_t work = 0;              // index into Turn::works
  std::vector<std::uint32_t> again{};  // of again: works, in their order
  // Its memory is looked at from the next event on that takes some: of what is there when the turn begins, and may be
  // dropped at once, and of what comes back at its very end.
  bool uncounted = false;
};

struct Turn {
  std::vector<TurnStorage> storages;
  std::vector<TurnWork> works;
  std::vector<TurnEvent> events;
};

struct ReplayedTurns {
  double seconds = 0;               // of a turn, in the mean of the last kMeanTurns
  Bytes highest = 0;                // bytes on the device at any moment of the turns that are judged
  std::vector<std::string> faults;  // what is wrong in them; at most kMostFaults
  static constexpr int kFirstJudged = 2, kTurns = 40, kMeanTurns = 6;
  static constexpr std::size_t kMostFaults = 8;
};

// The first turns begin with copies of everything in every path, and are not judged. Mean of six turns: copies may
// settle into a rhythm of two or three turns.
ReplayedTurns replay_turns(const Turn& turn, const CycleLinks& links);

}  // namespace memwall
