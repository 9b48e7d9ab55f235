// The re-runs of a plan by the names of modules and operators. Internal to policies/plan.
#pragma once

#include <string>
#include <vector>

#include "policies/plan/forward_names.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

// A re-run and what it brings back.
struct NamedRerun {
  const PlannedRerun* rerun = nullptr;
  std::vector<StorageId> back;  // made by its ops, dropped before it and read behind it; ascending
};

class RerunNames {
 public:
  // All must outlive it.
  RerunNames(const Trace& trace, const Dataflow& flow, const ForwardNames& forward)
      : t_(trace), flow_(flow), forward_(forward) {}

  // In `realization` the re-run stands under recompute, lazy_operators or unnamed.
  void add(const NamedRerun& rerun, PlanRealization& realization);
  // The modules under recompute: what is dropped there for good goes with them.
  const std::vector<std::string>& units() const { return units_; }

 private:
  std::vector<std::string> covering(const NamedRerun& rerun) const;
  bool is_whole(const std::string& module, const NamedRerun& rerun) const;
  bool can_be_called_again(const std::vector<std::string>& modules, const NamedRerun& rerun) const;
  std::string common_module(const NamedRerun& rerun) const;
  // Operators in `module` whose results stay although backward needs them; false: no list of names says so.
  bool find_saved_operators(const std::string& module, const NamedRerun& rerun, std::vector<std::string>& names) const;
  bool stops_early(const std::vector<std::string>& modules, const NamedRerun& rerun) const;
  bool draws_random(const NamedRerun& rerun) const;
  void add_modules(std::vector<std::string> modules, std::vector<std::string> save, const NamedRerun& rerun,
                   PlanRealization& realization);
  void add_unnamed(const std::string& reason, const NamedRerun& rerun, PlanRealization& realization) const;

  const Trace& t_;
  const Dataflow& flow_;
  const ForwardNames& forward_;
  std::vector<std::string> units_;
};

}  // namespace memwall
