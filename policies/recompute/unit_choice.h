// Which parts of a forward are recomputed: what the policies that recompute units have in common to be asked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/trace/dataflow.h"
#include "policies/trace/segments.h"
#include "sim/policy/arguments.h"
#include "sim/policy/parameter.h"

namespace memwall {

struct UnitChoice {
  std::string policy;  // for messages
  std::string mode;    // full, sqrt, every, modules, ops
  std::size_t every = 1;              // neighbours that are one unit: blocks, or the named modules
  std::vector<std::string> patterns;  // of modules or operators
  bool keep_last = false;
  bool spread_evenly = false;         // where not all units are taken; else the first ones are
  double fraction = 1;                // of the units of a forward
  std::optional<std::size_t> layers;  // that many of them
  bool hides = false;                 // as many as leave the step no longer
};

// mode, every, modules and, `with_ops`, ops: single operators may be named, too.
std::vector<ParameterInfo> unit_parameters(bool with_ops);
// fraction, layers, hides, spread.
std::vector<ParameterInfo> unit_share_parameters();
// early_stop, last, allow_collectives: how they are run again.
std::vector<ParameterInfo> rerun_parameters();
// Throws UsageError where arguments contradict each other.
UnitChoice unit_choice_of(const std::string& policy, const PolicyArguments& arguments, bool with_ops);

// The units of a pass among which is chosen, ascending.
std::vector<RecomputeUnit> eligible_units(const Trace& trace, const Dataflow& flow, const Pass& pass,
                                          const UnitChoice& choice);
// So many of them; all where there are not as many.
std::vector<RecomputeUnit> taken_units(std::vector<RecomputeUnit> units, std::size_t taken, const UnitChoice& choice);
// How many of `eligible` units of a pass are taken by fraction= and layers=. Throws UsageError where there are fewer
// than `layers`.
std::size_t chosen_number(const Trace& trace, std::size_t eligible, const UnitChoice& choice);

// Every pattern must match something: a misspelt one would silently do nothing. Throws UsageError.
void refuse_idle_patterns(const Trace& trace, const std::vector<Pass>& all, const UnitChoice& choice);

// The same of patterns of operators that stand in parameter `key`.
void refuse_idle_operators(const Trace& trace, const std::vector<Pass>& all, const std::string& policy,
                           const std::string& key, const std::vector<std::string>& patterns);

}  // namespace memwall
