// Copies of a turn that repeats, each with the event before which it cannot begin and the one before which it has to be
// done: how long the turn is at least, and in which order of the copies it is shortest. Internal to policies/cycle.
//
// One copy at a time in each direction, each in one piece. As long as no order is decided, copies may interrupt each
// other: then they are in time where, between any two events, what has to begin and end there takes no longer (Horn,
// Naval Research Logistics Quarterly 21, 1974). That is less than any order takes, and what a decision adds is exact.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "policies/cycle/shortest_turn.h"

namespace memwall {

struct TurnCopy {
  std::int32_t release = 0, deadline = 0;  // events; of a later turn from events() on. 0 <= release < events()
  double seconds = 0;
};

// Of one direction: copy `second`, so many turns later, is the first of its kind that begins behind copy `first`.
struct CopyPrecedence {
  std::uint8_t direction = 0;
  std::uint32_t first = 0, second = 0;
  std::int32_t turns = 0;
};

// Copies in the order in which they run in one turn of the links; `turn`: in which turn of its own release.
struct CopyPlace {
  std::uint32_t copy = 0;
  std::int32_t turn = 0;
};

struct OrderedCopies {
  double seconds = 0;  // of the turn; infinite: the order contradicts itself
  std::array<std::vector<CopyPlace>, 2> order;
  // Decisions of which one would have to be another for a shorter turn, each with another outcome. Empty: there is
  // none.
  std::vector<CopyPrecedence> alternatives;
};

// Where copies are not all known: they take so long between two events. `to` is of a later turn from events() on.
struct TurnWindow {
  std::int32_t from = 0, to = 0;
  double seconds = 0;
};

struct TurnOfCopies {
  // Of events in their order where nothing waits; and of the next turn's first. Has to outlive it.
  std::span<const double> starts;
  std::array<std::vector<TurnCopy>, 2> copies;  // by direction
  std::vector<TurnWindow> windows;

  std::int32_t events() const { return static_cast<std::int32_t>(starts.size()) - 1; }
  // Without waits.
  double seconds_between(std::int32_t from, std::int32_t to) const {
    const auto start = [this](std::int32_t event) {
      return starts[static_cast<std::size_t>(event % events())] + event / events() * (starts.back() - starts.front());
    };
    return start(to) - start(from);
  }

  // Seconds of a turn at least, with decisions so far. Adds what it took to `work`.
  double least(const std::vector<CopyPrecedence>& decided, double at_least, std::uint64_t& work) const;
  // An order that keeps to the decisions, made for a turn of so many seconds.
  OrderedCopies ordered(const std::vector<CopyPrecedence>& decided, double seconds, std::uint64_t& work) const;
};

}  // namespace memwall
