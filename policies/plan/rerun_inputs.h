// How long what re-runs start from lives, where PyTorch carries them out. Internal to policies/plan.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/dataflow.h"
#include "policies/trace/saved_storages.h"
#include "sim/policy/memory_plan.h"
#include "sim/policy/plan_realization.h"

namespace memwall {

// All change `keeps` of the plan, and say whether they have.
class RerunInputs {
 public:
  // All must outlive it.
  RerunInputs(const Trace& trace, const Dataflow& flow, const SavedStorages& saved)
      : t_(trace), flow_(flow), saved_(saved) {}

  // A checkpointed unit's frame holds it until the last node that has saved anything in the unit has run.
  bool keep_for_unit(const PlannedRerun& unit, const std::vector<ModuleRecompute>& recompute, MemoryPlan& plan) const;
  // What single operators alone start from they hold until the last of them has run again.
  bool keep_for_operators(MemoryPlan& plan, const std::vector<ModuleRecompute>& recompute) const;
  // Selective checkpointing alone keeps results of what it calls again, and those of the operators that it is told
  // (`recompute`: the plan's units). Any other result is kept by the re-runs alone that read it, of single operators
  // until they have run. What single operators call besides is not called.
  bool shorten_keeps_not_handed_out(MemoryPlan& plan, const std::vector<ModuleRecompute>& recompute) const;
  // What a unit starts from is given up, to be made again by another re-run, behind its last node at the earliest.
  bool hold_inputs_of_unit(const PlannedRerun& unit, const std::vector<ModuleRecompute>& recompute,
                           MemoryPlan& plan) const;
  // The modules of the unit around the op; null: it is in none.
  const std::vector<std::string>* modules_around(OpId op, const std::vector<ModuleRecompute>& recompute) const;
  // Does any op of the re-run read (write) the storage?
  bool uses(const PlannedRerun& rerun, StorageId s, Access access) const;
  // Has the storage a decision of the plan?
  static bool is_decided(StorageId s, const MemoryPlan& plan);

 private:
  const ModuleRecompute* unit_around(OpId op, const std::vector<ModuleRecompute>& recompute) const;
  bool is_input(StorageId s, const std::vector<std::string>& modules, OpId before) const;
  bool is_handed_out(OpId maker, const std::vector<ModuleRecompute>& recompute) const;
  PlanPoint read_until(StorageId s, const std::vector<ModuleRecompute>& recompute, const MemoryPlan& plan) const;
  OpId end_of_backward(const PlannedRerun& unit, const std::vector<ModuleRecompute>& recompute) const;
  bool is_inside(OpId op, const std::vector<std::string>& modules) const;
  bool keep(StorageId s, const PlannedRerun& unit, const PlanPoint& until, MemoryPlan& plan) const;

  const Trace& t_;
  const Dataflow& flow_;
  const SavedStorages& saved_;
};

}  // namespace memwall
