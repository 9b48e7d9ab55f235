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
  std::size_t every = 1;
  std::vector<std::string> patterns;  // of modules or operators
  bool keep_last = false;
  bool spread_evenly = false;         // where not all units are taken; else the first ones are
  double fraction = 1;                // of the units of a forward
  std::optional<std::size_t> layers;  // that many of them
};

// mode, every, modules and, `with_ops`, ops: single operators may be named, too.
std::vector<ParameterInfo> unit_parameters(bool with_ops);
// fraction, layers, spread.
std::vector<ParameterInfo> unit_share_parameters();
// early_stop, last, allow_collectives: how they are run again.
std::vector<ParameterInfo> rerun_parameters();
// Throws UsageError where arguments contradict each other.
UnitChoice unit_choice_of(const std::string& policy, const PolicyArguments& arguments, bool with_ops);

// The units of a pass, ascending. Throws UsageError where there are fewer than `layers`.
std::vector<RecomputeUnit> chosen_units(const Trace& trace, const Dataflow& flow, const Pass& pass,
                                        const UnitChoice& choice);

// Every pattern must match something: a misspelt one would silently do nothing. Throws UsageError.
void refuse_idle_patterns(const Trace& trace, const std::vector<Pass>& all, const UnitChoice& choice);

// The same of patterns of operators that stand in parameter `key`.
void refuse_idle_operators(const Trace& trace, const std::vector<Pass>& all, const std::string& policy,
                           const std::string& key, const std::vector<std::string>& patterns);

}  // namespace memwall
