// Where single operators are run again, in a program in PyTorch: when a node of autograd's graph, or another re-run,
// first asks for what they make. Internal to policies/plan.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "policies/plan/rerun_inputs.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/saved_storages.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

class RerunDemand {
 public:
  // All must outlive it.
  RerunDemand(const Trace& trace, const Dataflow& flow, const SavedStorages& saved, const RerunInputs& inputs);

  // Moves the re-run there; what it starts from is not given up before that. Those behind it stand where they will
  // stand. Has it changed the plan? REQUIRES: it is no unit; re-runs ascend.
  bool move(PlannedRerun& rerun, MemoryPlan& plan) const;
  // A unit runs again when the first of its nodes asks for what it has saved inside. Moves the re-run there if that is
  // later. `modules`: of the unit. Has it changed the plan?
  bool move_unit(PlannedRerun& unit, const std::vector<std::string>& modules) const;
  // Behind the re-run at `from` the storage goes with the node that it is handed to. Has it changed the plan?
  bool hand_over(StorageId storage, const PlanPoint& from, MemoryPlan& plan) const;
  // What a re-run alone reads of what another has made goes behind that. Has it changed the plan?
  bool drop_behind_readers(MemoryPlan& plan, const std::vector<bool>& is_single) const;
  // Those that stand at one point run in the order in which its node asks for what they make: that in which its
  // operator has saved it. Has it changed the plan?
  bool put_in_order_of_asking(MemoryPlan& plan) const;
  // Does one start from what another makes, and that, by way of others perhaps, from what it makes itself? Each waits
  // for the other then. `is_single`: of each re-run, is it no unit?
  bool wait_for_each_other(const MemoryPlan& plan, const std::vector<bool>& is_single) const;

 private:
  std::size_t place_in_asking(const PlannedRerun& rerun, const MemoryPlan& plan) const;
  bool starts_from(const PlannedRerun& rerun, const PlannedRerun& other, const MemoryPlan& plan) const;
  PlanPoint first_to_ask(const PlannedRerun& rerun, const MemoryPlan& plan) const;
  bool hold_inputs(const PlannedRerun& rerun, const PlanPoint& from, MemoryPlan& plan) const;

  const Trace& t_;
  const Dataflow& flow_;
  const SavedStorages& saved_;
  const RerunInputs& inputs_;
  std::map<OpId, OpId> node_of_;                   // by operator of forward: the first op of its node
  std::map<StorageId, std::vector<OpId>> savers_;  // operators that autograd saves it for; ascending
};

}  // namespace memwall
