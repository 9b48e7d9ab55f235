// The re-runs of a plan by the names of modules and operators. Internal to policies/plan.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "policies/plan/forward_names.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// A re-run and what it brings back.
struct NamedRerun {
  const PlannedRerun* rerun = nullptr;
  std::vector<StorageId> back;          // made by its ops, dropped before it and read behind it; ascending
  std::vector<PlanPoint> dropped_at{};  // of each
};

// Where a re-run stands in a realization: a unit of a ModuleRecompute, an OperatorRecompute, or nowhere.
struct RerunPlace {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t recompute = kNone, unit = 0;  // indices
  std::size_t lazy = kNone;
};

class RerunNames {
 public:
  // All must outlive it.
  RerunNames(const Trace& trace, const Dataflow& flow, const ForwardNames& forward, const MemoryPlan& plan);

  // Two that repeat one op are no units side by side: the later one has no name. In `realization` the re-run stands
  // under recompute, lazy_operators or unnamed.
  RerunPlace add(const NamedRerun& rerun, PlanRealization& realization);
  // The ops of the device that the re-run launches, with its number among all units, or among lazy operators.
  NamedRerunOps ops_of(const PlannedRerun& rerun, const RerunPlace& place, const PlanRealization& realization) const;
  // The modules under recompute: what is dropped there for good goes with them.
  const std::vector<std::string>& units() const { return units_; }
  // Is it run again by itself, and not as part of a unit?
  bool is_lazy(OpId op) const { return lazy_.contains(op); }

 private:
  std::vector<std::string> covering(const NamedRerun& rerun) const;
  bool is_whole(const std::string& module, const NamedRerun& rerun) const;
  // Is `back[i]` a result that others have read by the time when the first one goes, and that is made a second time for
  // the modules alone?
  bool is_made_twice(std::size_t i, const std::vector<std::string>& modules, const NamedRerun& rerun) const;
  bool starts_another(StorageId storage, const std::vector<std::string>& modules, const NamedRerun& rerun) const;
  bool can_be_called_again(const std::vector<std::string>& modules, const NamedRerun& rerun) const;
  std::vector<std::string> common_modules(const NamedRerun& rerun) const;
  // Does forward run them one behind the other, and nothing else between their first op and their last?
  bool stand_in_a_row(const std::vector<std::string>& modules) const;
  bool makes_all_results(const std::vector<std::string>& modules, const std::vector<std::string>& save,
                         const NamedRerun& rerun) const;
  OpId end_of_saves(const std::vector<std::string>& modules) const;
  bool repeats_all(const std::vector<std::string>& modules, const std::vector<std::string>& save,
                   const NamedRerun& rerun) const;
  std::string caller_of(const std::string& module) const;
  bool is_handed_on_alone(const std::vector<std::string>& modules) const;
  bool is_read_in_part(StorageId storage, const std::string& module) const;
  std::set<std::string> handed_out(const NamedRerun& rerun) const;
  // Operators in the modules whose results stay although backward or the re-run needs them; false: no list of names
  // says so.
  bool find_saved_operators(const std::vector<std::string>& modules, const NamedRerun& rerun,
                            std::vector<std::string>& names) const;
  bool has_its_inputs(const std::vector<std::string>& modules, const NamedRerun& rerun) const;
  bool works_in_place(OpId op) const;
  bool stops_early(const std::vector<std::string>& modules, const NamedRerun& rerun) const;
  bool draws_random(const NamedRerun& rerun) const;
  RerunPlace add_modules(std::vector<std::string> modules, std::vector<std::string> save, const NamedRerun& rerun,
                         PlanRealization& realization);
  RerunPlace add_lazy(const NamedRerun& rerun, PlanRealization& realization);
  std::vector<std::uint32_t> kept_results(OpId op) const;
  RerunPlace add_unnamed(const std::string& reason, const NamedRerun& rerun, PlanRealization& realization) const;

  const Trace& t_;
  const Dataflow& flow_;
  const ForwardNames& forward_;
  const MemoryPlan& plan_;
  std::vector<std::string> units_;
  std::set<OpId> again_;  // what re-runs with a name run again
  std::set<OpId> lazy_;   // of these the single operators
  std::set<StorageId> dropped_, kept_, travels_;  // by the plan; what travels is not dropped
};

}  // namespace memwall
