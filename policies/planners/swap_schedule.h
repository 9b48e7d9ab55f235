// Storages that wait on the host within a gap between two uses: when their copies run, at which ops their memory is
// given up and asked for again, and what then lives on the device.
//
// Copies are placed in a ledger of links while they are chosen, and queue up in the end as copy engines serve them. A
// copy for which links have no time left, or whose memory is needed before it has left, makes the device wait.
#pragma once

#include <optional>
#include <vector>

#include "policies/profile/ledger.h"
#include "policies/profile/planned_memory.h"

namespace memwall {

struct Swap {
  Gap gap;
  Ledger::Span out, back;
  OpId dropped = kNoOp, fetched = kNoOp;  // right before these ops of the host program; dropped <= fetched
  Duration stall{};                       // that it adds, as far as the ledger tells
};

class SwapSchedule {
 public:
  // `profile` must outlive it. REQUIRES: its machine has the tiers "hbm" and "host" and ways between them.
  SwapSchedule(const StepProfile& profile, Bytes budget);

  // Live bytes with all that was committed.
  PlannedMemory& memory() { return memory_; }
  const PlannedMemory& memory() const { return memory_; }
  Bytes budget() const { return budget_; }
  // Is more than the budget live after an op from `first` to before `end`?
  bool is_over(OpId first, OpId end) const { return first < end && memory_.peak(first, end - 1) > budget_; }

  // From the end of the copy out to the begin of the copy back, if both have links to themselves: Capuchin's free time.
  Duration free_time(const Gap& gap) const;
  // Where copies of the gap's storage could run beside those that were committed, such that it is away where more than
  // the budget is live. Nothing where the host has no memory for it. REQUIRES: the gap does not wrap.
  std::optional<Swap> place(const Gap& gap) const;
  // REQUIRES: no swap of the same storage was committed; queue_copies() was not called.
  void commit(const Swap& swap);

  // Once all are chosen, before fetch_order() and decisions(): copies queue up in the order in which they may leave and
  // must be back. While more than the budget is live, memory is given up at once, and asked for at last: the device
  // waits.
  void queue_copies();
  // Issues the copy back earlier by so much, if there is memory for it then. Did it?
  bool fetch_earlier(std::size_t swap, Duration by);

  const std::vector<Swap>& swaps() const { return swaps_; }
  // Indices into swaps(), as their copies back follow each other in the host program.
  std::vector<std::size_t> fetch_order() const;
  // A decision per swap, in their order; copies go to the first tier of a plan. REQUIRES: queue_copies() was called.
  std::vector<StorageDecision> decisions() const;

 private:
  Bytes bytes(const Gap& gap) const { return profile_.trace().storages[gap.storage].bytes; }
  bool is_away_when_over(const Swap& swap) const { return is_over(swap.dropped, swap.fetched - 1); }
  OpId drop_point(const Gap& gap, Time left, OpId latest) const;
  Swap without_room(const Gap& gap) const;
  void take_away(const Swap& swap) { memory_.remove(swap.gap.storage, swap.dropped, swap.fetched - 2); }
  void take_back(const Swap& swap) { memory_.restore(swap.gap.storage, swap.dropped, swap.fetched - 2); }
  void move(Swap& swap, OpId dropped, OpId fetched);
  bool shift(Swap& swap, OpId dropped, OpId fetched);
  void keep_to_budget();

  const StepProfile& profile_;
  const Bytes budget_;
  const int device_, host_;
  Ledger ledger_;
  PlannedMemory memory_;
  std::vector<Swap> swaps_;
};

}  // namespace memwall
