// What one pair of saved-tensor hooks around a forward pass is shown: storages, numbered as autograd first saves them.
// For traces that say what autograd saves. Internal to policies/plan.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "policies/plan/forward_holds.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/saved_storages.h"
#include "sim/policy/memory_plan.h"
#include "sim/trace/trace.h"

namespace memwall {

struct HookedStorage {
  StorageId storage = kNoStorage;
  SavePoint saved;      // where it is shown first
  OpId asked = kNoOp;   // the first op of the node of backward that first asks for it; kNoOp: the trace shows none
  OpId back_by = kNoOp;  // where it has to be back by then: that op, or a re-run of the plan right before it
  OpId last_use = 0;    // in forward
  OpId held = 0;        // a program holds it until then, in forward: that, or later
  OpId last_write = 0;  // likewise
};

// Inside of a unit that is run again, by the plan or by a policy before it, other hooks take what is saved; those
// around it are shown the unit's inputs, where it begins. What a plan drops without a copy, or a re-run makes anew, is
// not counted: a single operator that is run again stands in its place.
class HookedStorages {
 public:
  // `unit_modules`: that the plan runs again whole. All must outlive it.
  HookedStorages(const Trace& trace, const Dataflow& flow, const SavedStorages& saved, const ForwardHolds& holds,
                 const Pass& pass, const MemoryPlan& plan, const std::vector<std::string>& unit_modules);

  // In the order in which they are shown.
  const std::vector<HookedStorage>& all() const { return all_; }
  // Where the node of backward that has this first op begins: with the first of what the plan runs again for it.
  OpId begin_of(OpId node) const;
  // The first op of the first node of backward that asks for anything saved.
  OpId first_node() const { return first_node_; }
  // The first op of backward.
  OpId backward() const { return pass_.backward; }

 private:
  struct Unit {
    std::vector<OpId> ops;  // of forward; ascending
    OpId begin = kNoOp, end = kNoOp;
    OpId position = kNoOp;  // in backward
  };
  void add_units_of_plan();
  OpId call_of(OpId op) const;
  void add_units_of_trace();
  void add_unit(Unit unit);
  void ask(StorageId storage, OpId position);
  template <typename Take>
  void each_input(const std::vector<OpId>& ops, OpId begin, Take take) const;
  bool is_inside(OpId op) const;
  bool is_shown(StorageId storage) const;
  void save(StorageId storage, SavePoint point);
  void find_saves();
  void complete(HookedStorage& storage) const;

  const Trace& t_;
  const Dataflow& flow_;
  const SavedStorages& saved_;
  const ForwardHolds& holds_;
  const Pass& pass_;
  const MemoryPlan& plan_;
  const std::vector<std::string>& unit_modules_;
  std::vector<Unit> units_;
  std::set<StorageId> gone_;  // dropped in forward, and made again or not needed
  std::map<StorageId, SavePoint> saved_at_;
  std::map<StorageId, OpId> rerun_asks_;  // what re-runs of the plan start from: where the first stands
  std::vector<HookedStorage> all_;
  OpId first_node_ = kNoOp;
};

}  // namespace memwall
