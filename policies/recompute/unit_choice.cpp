#include "policies/recompute/unit_choice.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "policies/trace/operator_name.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

// The mode is named, or follows from the one of every, modules and ops that is given. Named modules may be grouped,
// too.
std::string resolve_mode(const std::string& policy, const PolicyArguments& a, bool with_ops) {
  const std::string& named = a.choice("mode");
  std::vector<std::string> given;
  for (const char* key : {"every", "modules", "ops"})
    if ((with_ops || std::string(key) != "ops") && a.is_set(key)) given.emplace_back(key);
  const std::string begin = "Policy '" + policy + "': ";
  if (given == std::vector<std::string>{"every", "modules"}) given.erase(given.begin());
  if (given.size() > 1)
    throw UsageError(begin + given[0] + " and " + given[1] + " are both given; they are different modes, choose one.");
  if (named == "auto") return given.empty() ? "full" : given[0];
  if (!given.empty() && given[0] != named) throw UsageError(begin + given[0] + "=… contradicts mode=" + named + ".");
  if (given.empty() && (named == "every" || named == "modules" || named == "ops"))
    throw UsageError(begin + "mode=" + named + " needs " + named + "=….");
  return named;
}

std::vector<RecomputeUnit> all_units(const Trace& trace, const Dataflow& flow, const Pass& pass, const UnitChoice& c) {
  if (c.mode == "modules")
    return grouped(trace, pass, joined_in_place(trace, flow, pass, module_units(trace, pass, c.patterns)), c.every);
  if (c.mode == "ops") return operator_units(trace, pass, c.patterns);
  std::vector<RecomputeUnit> units;
  if (trace.knowledge.modules) units = joined_in_place(trace, flow, pass, block_units(trace, flow, pass));
  if (units.empty()) units = segment_units(trace, flow, pass);
  if (c.mode == "every") return grouped(trace, pass, units, c.every);
  if (c.mode == "sqrt") {
    // Chen et al., section 4.2: segments of sqrt(n) keep 2 sqrt(n) of n at the most.
    const auto size = static_cast<std::size_t>(std::sqrt(static_cast<double>(units.size())));
    return grouped(trace, pass, units, std::max<std::size_t>(1, size));
  }
  return units;
}

// `taken` of the units. Evenly: the unit with which another one is due, so that every n-th is where n divides.
std::vector<RecomputeUnit> taken_of(std::vector<RecomputeUnit> units, std::size_t taken, bool evenly) {
  if (taken >= units.size()) return units;
  if (!evenly) {
    units.resize(taken);
    return units;
  }
  std::vector<RecomputeUnit> some;
  for (std::size_t i = 0; i < units.size(); ++i)
    if ((i + 1) * taken / units.size() > i * taken / units.size()) some.push_back(std::move(units[i]));
  return some;
}

// What could have been meant instead of a pattern that matches nothing.
std::string alternatives(const Trace& trace, const std::vector<Pass>& all, const std::string& pattern, bool modules) {
  std::set<std::string> known;
  for (const Pass& pass : all)
    for (const OpId id : forward_ops(trace, pass)) {
      const Op& op = trace.ops[id];
      known.insert(modules ? trace.strings[op.module] : plain_operator_name(operator_of(trace, op)));
    }
  known.erase("");
  const std::vector<std::string> names(known.begin(), known.end());
  std::string text = did_you_mean(pattern, names);
  for (std::size_t i = 0; i < names.size() && i < 12; ++i) text += (i == 0 ? " It has: " : ", ") + names[i];
  return names.empty() ? text : text + (names.size() > 12 ? ", …." : ".");
}

void refuse_idle(const Trace& trace, const std::vector<Pass>& all, const std::string& policy, const std::string& key,
                 const std::vector<std::string>& patterns, bool modules) {
  for (const std::string& pattern : patterns) {
    const bool hit = std::any_of(all.begin(), all.end(), [&](const Pass& pass) {
      return !(modules ? module_units(trace, pass, {pattern}) : operator_units(trace, pass, {pattern})).empty();
    });
    if (hit) continue;
    throw UsageError("Policy '" + policy + "': " + key + "=" + pattern + " matches no forward op of trace '" +
                     trace.name + "'." + alternatives(trace, all, pattern, modules));
  }
}

}  // namespace

std::vector<ParameterInfo> unit_parameters(bool with_ops) {
  std::vector<std::string> modes = {"auto", "full", "sqrt", "every", "modules"};
  if (with_ops) modes.emplace_back("ops");
  std::vector<ParameterInfo> all = {
      choice(
          "mode", "auto", modes,
          fmt::format(
              "full: every block is a unit; every: every N blocks are one; sqrt: every sqrt(n) of n blocks; modules{}: "
              "those named. auto: the one whose parameter is given, else full. A block is a repeated module "
              "(layers.3), or, where modules are not known, a segment between articulation points of the dataflow.",
              with_ops ? ", ops" : "")),
      integer("every", Unset{"0"}, {1, 1'000'000}, "blocks",
              "blocks per unit; beside modules: that many of the named modules, one after the other, are one unit "
              "(Megatron-LM's recompute method uniform)."),
      patterns("modules", Unset{"none"}, "module paths; '*' stands for any letters: layers.*.mlp")};
  if (with_ops) all.push_back(patterns("ops", Unset{"none"}, "operators to compute again: gelu+softmax"));
  return all;
}

std::vector<ParameterInfo> unit_share_parameters() {
  return {number("fraction", 1, {0.001, 1}, "",
                 "share of the units that is computed again, from the first on; the others keep what they made. What "
                 "comes first is dropped longest, and computed again when little else is left."),
          integer("layers", Unset{"all"}, {1, 1'000'000}, "units", "that many of the units instead of a share."),
          flag("hides", false,
               "1: as many of the units, in the order of spread, as leave the step no longer than without them, to "
               "within 0.1 % (calls of the host move a step by less, and are no reason to stop). Found by bisection "
               "over simulations with unlimited memory: the largest number which that finds, where time does not grow "
               "with every unit."),
          choice("spread", "first", {"first", "even"},
                 "which units, where not all are taken. first: the first ones (Megatron-LM's recompute method block). "
                 "even: evenly over the forward, every n-th where n divides, the n-th first (as torchtitan and "
                 "torchtune wrap every n-th layer).")};
}

std::vector<ParameterInfo> rerun_parameters() {
  return {
      flag("early_stop", true, "1: stop the re-run once all that is needed is back; 0: re-run the whole unit."),
      choice("last", "recompute", {"recompute", "keep"},
             "the last unit, which backward needs at once: recompute (as PyTorch does) or keep."),
      flag("allow_collectives", false, "1: a unit may communicate again when it is re-run; 0: it is left as it was.")};
}

UnitChoice unit_choice_of(const std::string& policy, const PolicyArguments& a, bool with_ops) {
  UnitChoice c;
  c.policy = policy;
  c.mode = resolve_mode(policy, a, with_ops);
  c.every = static_cast<std::size_t>(a.integer_or("every", 1));
  if (c.mode == "modules" || c.mode == "ops") c.patterns = a.list(c.mode);
  c.keep_last = a.choice("last") == "keep";
  c.spread_evenly = a.choice("spread") == "even";
  c.fraction = a.number("fraction");
  c.hides = a.flag("hides");
  if (a.is_set("layers")) c.layers = static_cast<std::size_t>(a.integer_or("layers", 1));
  std::vector<std::string> numbers;
  if (c.layers) numbers.emplace_back("layers");
  if (c.fraction != 1) numbers.emplace_back("fraction");
  if (c.hides) numbers.emplace_back("hides");
  if (numbers.size() > 1)
    throw UsageError(fmt::format("Policy '{}': {} and {} both say how many units are taken; choose one.", policy,
                                 numbers[0], numbers[1]));
  return c;
}

std::vector<RecomputeUnit> eligible_units(const Trace& trace, const Dataflow& flow, const Pass& pass,
                                          const UnitChoice& c) {
  std::vector<RecomputeUnit> units = all_units(trace, flow, pass, c);
  if (c.keep_last && !units.empty()) units.pop_back();
  return units;
}

std::size_t chosen_number(const Trace& trace, std::size_t eligible, const UnitChoice& c) {
  if (c.layers && *c.layers > eligible)
    throw UsageError(fmt::format("Policy '{}': layers={}, but trace '{}' has {} (mode={}{}).", c.policy, *c.layers,
                                 trace.name, counted_text(eligible, "unit"), c.mode,
                                 c.keep_last ? ", the last one kept" : ""));
  const auto share = static_cast<std::size_t>(std::round(c.fraction * static_cast<double>(eligible)));
  return c.layers.value_or(std::max<std::size_t>(1, share));
}

std::vector<RecomputeUnit> taken_units(std::vector<RecomputeUnit> units, std::size_t taken, const UnitChoice& c) {
  return taken_of(std::move(units), taken, c.spread_evenly);
}

void refuse_idle_patterns(const Trace& trace, const std::vector<Pass>& all, const UnitChoice& choice) {
  refuse_idle(trace, all, choice.policy, choice.mode, choice.patterns, choice.mode == "modules");
}

void refuse_idle_operators(const Trace& trace, const std::vector<Pass>& all, const std::string& policy,
                           const std::string& key, const std::vector<std::string>& patterns) {
  refuse_idle(trace, all, policy, key, patterns, false);
}

}  // namespace memwall
