// What a step leaves of each link and of the memory of slower tiers, over time, while planned copies take their part.
//
// Time is cut into equal slots. Of a link a slot has what its rate gives less what the step's own copies, collectives
// and host work move there (kernels' traffic in HBM is left out: it bounds no copy to a slower tier). A copy takes of
// each slot what the scarcest link of its route has left, not more than its route carries: a fluid, as the engine
// shares links, of what is in truth a queue of copies.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/profile/step_profile.h"
#include "sim/machine/machine.h"

namespace memwall {

class Ledger {
 public:
  struct Span {
    Time begin{}, end{};
  };

  // `slots`: into which the step is cut. `profile` must outlive it.
  explicit Ledger(const StepProfile& profile, std::size_t slots = 4096);

  // When a copy of `bytes` between two tiers runs. earliest: as soon as links have room, from `ready` on. latest: as
  // late as it can, and done at `deadline`. Nothing where links have no room for it in the rest of the step. Both tiers
  // are indices into Machine::tiers, with a route between them.
  std::optional<Span> earliest(int from, int to, Bytes bytes, Time ready) const;
  std::optional<Span> latest(int from, int to, Bytes bytes, Time deadline) const;
  // One copy alone on idle links.
  Duration alone(int from, int to, Bytes bytes) const;

  // The copy takes what it needs of its links within the span. REQUIRES: earliest or latest gave it, and nothing was
  // reserved since.
  void reserve(int from, int to, Bytes bytes, const Span& span);

  // Is there room for so much more in the tier, all the time from `begin` to `end`? Pinned memory of the host is
  // rounded up to a power of two.
  bool has_room(int tier, Bytes bytes, Time begin, Time end) const;
  void hold(int tier, Bytes bytes, Time begin, Time end);

  // Share of the link's time that is taken, from 0 to 1. `link`: an index into Machine::links.
  double load(std::size_t link) const;

 private:
  const Route& route(int from, int to) const;
  std::size_t slot_of(Time time) const;
  double left(const Route& route, double whole, std::size_t slot) const;  // `whole`: what the route carries in a slot
  // Of the slots from this one on, or up to it, in which all of the route's links have something left, the nearest;
  // slots_: none. Where copies wait for full links, most slots have nothing.
  std::size_t next_open(const Route& route, std::size_t slot) const;
  std::size_t last_open(const Route& route, std::size_t slot) const;
  std::uint64_t open_slots(const Route& route, std::size_t word) const;
  void set_left(std::uint16_t link, std::size_t slot, double bytes);
  void take_own_traffic();
  void take_evenly(std::uint16_t link, double bytes, Time begin, Time end);
  Bytes rounded(int tier, Bytes bytes) const;

  const StepProfile& profile_;
  const Machine& machine_;
  Duration slot_;  // of one slot
  std::size_t slots_;
  std::vector<double> capacity_;           // by link: bytes per slot, of one rank of those that share it
  std::vector<std::vector<double>> left_;  // by link and slot: bytes
  std::vector<std::vector<std::uint64_t>> open_;  // by link: a bit for each slot with something left
  std::vector<std::vector<Bytes>> held_;   // by tier and slot: what copies take there
  std::vector<Bytes> room_;                // by tier: what the step itself leaves
};

}  // namespace memwall
