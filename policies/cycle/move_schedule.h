// Which gaps to spend away from the device, so that a turn keeps to a budget: list scheduling by one who knows the
// future.
//
// Copies leave when the outgoing link is idle, long before the memory is needed: the gap is taken that covers most of
// the time that is over the budget and still lies ahead, current or to come, as long as its content is written. Copies
// come back in the order of their next use, as early as there is memory. The result is a plan for every turn: what the
// end of one prepares, the next begins with.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "policies/cycle/cycle_links.h"
#include "policies/cycle/move_plan.h"

namespace memwall {

struct MoveSettings {
  bool by_area = false;          // weigh the time over the budget by the gap's bytes
  double margin = 1;             // a gap must be so many times as long as its copy
  std::uint32_t look_ahead = 1;  // absent storages that are asked, in the order of their next use, which has room
  // A gap is taken where it covers at least this share of what the best may cover: near 1 all are compared again and
  // again, as each that is taken leaves less to the others.
  double nearness = 0.95;
  // Storages below this part of the excess are asked only where the others do not do: there are many of them, and each
  // copy costs calls of the host.
  Bytes finest = 16384;
  std::vector<double> weights;   // by gap: its preference; 0 = leave it where it is. Empty: all 1
  // Gaps that are taken first, in this order, where they cover time over the budget and links have time.
  std::vector<std::uint32_t> first;
  // By slot: how long the device is expected to wait right before it, which gives links time. Empty: nowhere. More is
  // added where it has to be.
  std::vector<Duration> waits;
  // What is used last is away, from when on its memory is needed, whatever time the links have: quickly found, and with
  // long waits.
  bool farthest = false;
  // So often at most are waits added and gaps chosen anew.
  int rounds = 24;
  // Where waits are added, what is chosen so far stays chosen: takes a part of the time, and plans are somewhat worse.
  bool goes_on = false;
  // The device waits longer, all in all: such a plan is given up before it is complete.
  Duration longest_wait = kLongestTime;
};

struct MoveSchedule {
  MovePlan plan;
  bool fits = true;            // within the budget
  std::uint32_t over = 0;      // !fits: the first slot that is over it
  std::uint64_t work = 0;      // candidates placed or refused, and slots: what it took, in no unit of time
};

// Makes plans of one cycle and budget by many settings: what is the same for all of them is made once.
class MoveScheduler {
 public:
  // The cycle and the links have to outlive it.
  MoveScheduler(const StepCycle& cycle, const CycleLinks& links, Bytes budget);
  MoveSchedule schedule(const MoveSettings& settings) const;

  struct Known;  // internal

 private:
  std::shared_ptr<const Known> known_;
};

// With one settings.
MoveSchedule schedule_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget,
                            const MoveSettings& settings = {});

}  // namespace memwall
