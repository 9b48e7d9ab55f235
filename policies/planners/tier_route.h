// The way between device memory and a slower tier, as planners plan for it: its legs, their times in a ledger of links,
// and how a memory plan says it.
//
// Storage is reached through pinned memory of the host where the machine has such a way, as swappers do; what else has
// a direct route, by that. A copy takes one leg after the other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/profile/ledger.h"
#include "sim/machine/machine.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// A copy on each leg of its way.
struct RoutedCopy {
  std::vector<Ledger::Span> legs;  // in the order in which they run; at least one
  Time begin() const { return legs.front().begin; }
  Time end() const { return legs.back().end; }
};

class TierRoute {
 public:
  // Nothing where the machine lacks the tier, or a way there and back.
  static std::optional<TierRoute> find(const Machine& machine, const std::string& tier);
  // Throws UsageError where there is none. `planner`: by name, for the message.
  static TierRoute required(const std::string& planner, const Machine& machine, const std::string& tier);

  TransferStyle style() const;
  int tier() const { return tier_; }

  // As Ledger: as soon as links have room, and as late as they let it. Nothing where they have none in the step.
  std::optional<RoutedCopy> earliest_out(const Ledger& ledger, Bytes bytes, Time ready) const;
  std::optional<RoutedCopy> latest_back(const Ledger& ledger, Bytes bytes, Time deadline) const;
  // REQUIRES: the ledger gave it, and nothing was reserved since.
  void reserve_out(Ledger& ledger, Bytes bytes, const RoutedCopy& copy) const;
  void reserve_back(Ledger& ledger, Bytes bytes, const RoutedCopy& copy) const;
  // One copy alone on idle links, all legs together.
  Duration alone_out(const Ledger& ledger, Bytes bytes) const;
  Duration alone_back(const Ledger& ledger, Bytes bytes) const;

  // Of copies one after the other: the slowest leg's. REQUIRES: `machine` is the one of find().
  BytesPerSecond rate_out(const Machine& machine) const;

 private:
  struct Leg {
    int from, to;
  };
  TierRoute(TransferStyle style, int tier, std::vector<Leg> out);
  static Duration alone(const std::vector<Leg>& legs, const Ledger& ledger, Bytes bytes);
  static void reserve(const std::vector<Leg>& legs, Ledger& ledger, Bytes bytes, const RoutedCopy& copy);

  TransferStyle style_;
  int tier_;
  std::vector<Leg> out_, back_;
};

}  // namespace memwall
