// Copies, drops and fetches as saved-tensor hooks carry them out (HookMove, sim/policy/plan_realization.h): which
// points of the program those are, and the nearest ones to a plan's. Internal to policies/plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/plan/forward_names.h"
#include "policies/plan/hooked_storages.h"
#include "sim/policy/memory_plan.h"
#include "sim/policy/plan_realization.h"

namespace memwall {

// Points of the host program by what the device has been given: all points between two of its ops are one place.
class DevicePlaces {
 public:
  explicit DevicePlaces(const Trace& trace);
  // Ops of the device before the point.
  std::uint32_t of(OpId op, bool after) const { return before_[op + (after ? 1 : 0)]; }
  std::uint32_t of(const PlanPoint& at) const { return of(at.op, at.after); }

 private:
  std::vector<std::uint32_t> before_;  // by op, and all of them
};

// Is it copied to the host's memory alone, as hooks do? True of what is not copied.
bool goes_to_host(const StorageDecision& d, const std::vector<TransferStyle>& tiers);

// Of one forward pass and its backward.
class HookMoves {
 public:
  // All must outlive it.
  HookMoves(const Trace& trace, const SavedStorages& saved, const HookedStorages& hooked,
            const std::vector<TransferStyle>& tiers);

  // Empty: hooks carry out the decision as it is. Else a sentence that says why not.
  std::string why_not(const StorageDecision& d) const;
  // The decision with its points where hooks run: copied where it is shown; given up at the first showing, of a storage
  // of at least `min_bytes`, behind the plan's drop, or at the end of forward; fetched for the last node of backward up
  // to the plan's fetch that is the first to ask for such a storage, or as backward begins. As it is where that holds
  // already. Nothing where hooks cannot carry it out, for the reason of why_not.
  std::optional<StorageDecision> moved(const StorageDecision& d, Bytes min_bytes) const;
  // Adds to `offload` the moves of those of the decisions that hooks carry out, and to `unnamed` the others.
  void name(const std::vector<const StorageDecision*>& decisions, const ForwardNames& forward, NamedOffload& offload,
            std::vector<UnnamedDecisions>& unnamed) const;

 private:
  static constexpr std::size_t kEnd = static_cast<std::size_t>(-1);  // HookMove::kEnd
  // Indices of hooked storages.
  struct Places {
    std::size_t shown = 0, give_back = kEnd, fetch = kEnd;
  };
  const HookedStorage& hooked(std::size_t index) const { return hooked_.all()[index]; }
  Bytes bytes(std::size_t index) const { return t_.storages[hooked(index).storage].bytes; }
  std::uint32_t shown(std::size_t i) const { return places_.of(hooked(i).saved.at.op, hooked(i).saved.at.after); }
  std::uint32_t asked(std::size_t i) const { return places_.of(hooked(i).asked, false); }
  std::uint32_t last_use(std::size_t i) const { return places_.of(hooked(i).last_use, true); }
  std::uint32_t held(std::size_t i) const { return places_.of(hooked(i).held, true); }
  std::uint32_t end_of_forward() const { return places_.of(hooked_.backward(), false); }
  std::uint32_t begin_of_backward() const { return places_.of(hooked_.first_node(), false); }
  // Why hooks carry out no plan for this storage; empty: they do.
  std::string refusal(const StorageDecision& d) const;
  std::optional<std::size_t> give_back(std::size_t index, const PlanPoint& drop) const;
  std::optional<std::size_t> fetch(std::size_t index, const PlanPoint& at) const;
  bool is_handed_over(const StorageDecision& d) const;
  std::optional<Places> places(const StorageDecision& d) const;  // REQUIRES: refusal() is empty
  PlanPoint drop_behind(std::size_t index, const PlanPoint& drop, Bytes min_bytes) const;
  PlanPoint fetch_before(std::size_t index, const PlanPoint& fetch, Bytes min_bytes) const;

  const Trace& t_;
  const SavedStorages& saved_;
  const HookedStorages& hooked_;
  const std::vector<TransferStyle>& tiers_;  // of the plan
  const DevicePlaces places_;
  std::vector<std::size_t> index_of_;  // by storage; kEnd: hooks are not shown it
};

}  // namespace memwall
