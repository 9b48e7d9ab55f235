// How long what re-runs start from lives, where PyTorch carries them out. Internal to policies/plan.
#pragma once

#include "policies/trace/dataflow.h"
#include "policies/trace/saved_storages.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// All change `keeps` of the plan, and say whether they have.
class RerunInputs {
 public:
  // All must outlive it.
  RerunInputs(const Trace& trace, const Dataflow& flow, const SavedStorages& saved)
      : t_(trace), flow_(flow), saved_(saved) {}

  // A checkpointed unit's frame holds it until the last node that has saved anything in the unit has run.
  bool keep_for_unit(const PlannedRerun& unit, MemoryPlan& plan) const;
  // Single operators hold it until they have run again.
  bool keep_for_operators(const PlannedRerun& rerun, MemoryPlan& plan) const;
  // Only selective checkpointing keeps results that it does not run again. Where a re-run is handed out none of them,
  // what it calls last is kept by the re-runs alone that read it.
  bool shorten_keeps_not_handed_out(MemoryPlan& plan) const;
  // Does any op of the re-run read (write) the storage?
  bool uses(const PlannedRerun& rerun, StorageId s, Access access) const;
  // Has the storage a decision of the plan?
  static bool is_decided(StorageId s, const MemoryPlan& plan);

 private:
  OpId end_of_backward(const PlannedRerun& unit) const;
  bool keep(StorageId s, const PlannedRerun& unit, const PlanPoint& until, MemoryPlan& plan) const;

  const Trace& t_;
  const Dataflow& flow_;
  const SavedStorages& saved_;
};

}  // namespace memwall
