// Where a storage is away from device memory, within one of its gaps between uses: also across the boundary of the
// step, of what lives from step to step. What then lives on the device, and the decisions that say it.
#pragma once

#include <vector>

#include "policies/profile/step_profile.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// It is given up right before `dropped` and asked for right before `fetched`, which comes later. Of a gap that wraps
// each may stand in the next step: the numbers are of the ops there, which are those of this one.
struct Absence {
  Gap gap;
  OpId dropped = kNoOp, fetched = kNoOp;
  bool dropped_next = false, fetched_next = false;  // in the next step; dropped_next only with fetched_next
  std::uint8_t tier = 0;                            // of the plan
  // Where its copy leaves, if dropped_next in the next step; no op: behind the use before the gap.
  PlanPoint copied{};

  // At the boundary of the step it is on the other tier alone.
  bool crosses() const { return fetched_next && !dropped_next; }
};

// The first op of the step before which something may be put: behind its marks and hand-overs.
OpId first_place(const Trace& trace);

// The gap's storage could leave: it lies on the device, where ops of the device alone touch it.
bool may_leave(const StepProfile& profile, StorageId storage);

// Live bytes after each op, untracked ones not counted, without what is absent. As PlannedMemory, to be asked op by op.
class AbsentMemory {
 public:
  // `profile` must outlive it.
  explicit AbsentMemory(const StepProfile& profile);

  Bytes after(OpId op) const { return live_[op]; }
  Bytes peak() const;
  void take_away(const Absence& absence) { add(absence, -profile_.held(absence.gap.storage)); }
  void take_back(const Absence& absence) { add(absence, profile_.held(absence.gap.storage)); }
  // Asks for it as early as no more than `limit` is live for it, within the step in which it is asked for.
  void fetch_early(Absence& absence, Bytes limit);
  // Gives it up as late as that, and not behind op `last`. REQUIRES: it is asked for in the same step.
  void drop_late(Absence& absence, Bytes limit, OpId last);
  // It stays where no more than `limit` is live with it. Does it? REQUIRES: it was taken away.
  bool stay(const Absence& absence, Bytes limit);

 private:
  void add(const Absence& absence, Bytes bytes);
  void add(OpId first, OpId end, Bytes bytes);

  const StepProfile& profile_;
  const OpId first_;
  std::vector<Bytes> live_;
  Bytes at_start_;
};

// A copy leaves for each, whether the tier has the same content already or not: what is away
// has moved. Nothing is copied back that the next use overwrites, and nothing out for that, but for what crosses into
// the next step. Fetches at one op go in the order of need. REQUIRES: no two absences of one gap.
std::vector<StorageDecision> decisions_of(std::vector<Absence> absences);

}  // namespace memwall
