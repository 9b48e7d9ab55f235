// How many bytes would live on the device under a memory plan: told from the plan, without writing it.
//
// Follows what the writer does (policies/plan/plan_writer.h): a dropped storage gives its block back and a fetch or a
// re-run allocates it again; what a re-run starts from lives until then. Left out: what lives only within a re-run, and
// staging. plan_estimate.h counts everything, at the price of writing the plan.
#pragma once

#include "policies/profile/step_profile.h"
#include "policies/trace/live_profile.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// Live bytes of a step, untracked ones not counted, while decisions are added to it.
class PlannedMemory {
 public:
  // `profile` must outlive it.
  explicit PlannedMemory(const StepProfile& profile) : profile_(profile), live_(profile.trace(), profile.held()) {}

  // The most that lives, and the first op after which it does; kNoOp where that is before the first.
  Bytes peak() const { return live_.peak(); }
  OpId peak_op() const { return live_.peak_op(); }
  Bytes peak(OpId first, OpId last) const { return live_.peak(first, last); }

  // The storage is away after each op from `first` to `last`, inclusive; restore() takes that back.
  void remove(StorageId storage, OpId first, OpId last) { live_.add(first, last, -profile_.held(storage)); }
  void remove_at_start(StorageId storage) { live_.add_at_start(-profile_.held(storage)); }
  void restore(StorageId storage, OpId first, OpId last) { live_.add(first, last, profile_.held(storage)); }

 private:
  const StepProfile& profile_;
  LiveProfile live_;
};

// The peak of device memory under a plan that can be carried out (policies/plan/plan_check.h), untracked bytes not
// counted. Nested re-runs: what an inner one makes for an outer one alone is not counted.
Bytes planned_peak(const StepProfile& profile, const MemoryPlan& plan);

}  // namespace memwall
