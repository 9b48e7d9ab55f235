#include "policies/sharding/fsdp_units.h"

#include <algorithm>
#include <set>

#include "policies/trace/module_blocks.h"
#include "policies/trace/segments.h"
#include "sim/error.h"

namespace memwall {
namespace {

std::size_t parts_of(const std::string& path) { return static_cast<std::size_t>(std::ranges::count(path, '.')) + 1; }

// The modules of forward, in the order in which it comes to them.
std::vector<std::string> modules_in_order(const Trace& trace) {
  std::vector<std::string> modules;
  std::set<std::string> seen;
  for (const Op& op : trace.ops) {
    if (op.module == 0 || op.phase != Phase::forward) continue;
    for (const std::string& part : leading_parts(trace.strings[op.module]))
      if (seen.insert(part).second) modules.push_back(part);
  }
  return modules;
}

}  // namespace

FsdpUnits::FsdpUnits(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis,
                     const std::vector<std::string>& patterns)
    : t_(trace), of_storage_(trace.storages.size(), kNone) {
  find_units(patterns);
  assign(flow, analysis);
}

void FsdpUnits::find_units(const std::vector<std::string>& patterns) {
  units_.push_back({});
  const std::vector<std::string> modules = modules_in_order(t_);
  const ModuleBlocks blocks({modules.begin(), modules.end()}, BlockRule::alike);
  std::set<std::string> matched;
  for (const std::string& path : modules) {
    bool is_unit = patterns.empty() && blocks.of(path) == path;
    for (const std::string& pattern : patterns)
      if (parts_of(pattern) == parts_of(path) && matches(pattern, path)) {
        is_unit = true;
        matched.insert(pattern);
      }
    if (!is_unit) continue;
    by_path_[path] = units_.size();
    units_.push_back({.module = path});
  }
  for (const std::string& pattern : patterns)
    if (!matched.contains(pattern))
      throw UsageError("Policy 'fsdp': units=" + pattern + " is no module of trace '" + t_.name + "', which has " +
                       std::to_string(modules.size()) +
                       (modules.empty() ? "." : ", the first of them '" + modules.front() + "'."));
  for (FsdpUnit& unit : units_) {
    for (const std::string& part : leading_parts(unit.module)) {
      const auto outer = by_path_.find(part);
      if (outer == by_path_.end() || part == unit.module) continue;
      unit.parent = outer->second;
      ++unit.depth;
    }
    if (!unit.module.empty()) ++unit.depth;
  }
}

std::vector<bool> FsdpUnits::named(const std::vector<std::string>& patterns, const std::string& parameter) const {
  std::vector<bool> named(units_.size(), false);
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (std::size_t unit = 1; unit < units_.size(); ++unit) {
      const std::string& path = units_[unit].module;
      if (parts_of(pattern) != parts_of(path) || !matches(pattern, path)) continue;
      named[unit] = any = true;
    }
    if (!any)
      throw UsageError("Policy 'fsdp': " + parameter + "=" + pattern + " names none of the " +
                       std::to_string(units_.size() - 1) + " units" +
                       (units_.size() > 1 ? ", the first of them '" + units_[1].module + "'." : "."));
  }
  return named;
}

std::size_t FsdpUnits::of_module(StringId module) const {
  const auto [found, is_new] = of_module_.try_emplace(module, 0);
  if (is_new)
    for (const std::string& part : leading_parts(t_.strings[module]))
      if (const auto unit = by_path_.find(part); unit != by_path_.end()) found->second = unit->second;
  return found->second;
}

// Of backward without a module: that of the forward whose node runs it.
std::size_t FsdpUnits::module_unit(OpId id) const {
  const Op* op = &t_.ops[id];
  if (op->module == 0 && op->source != kNoOp) op = &t_.ops[op->source];
  return op->module == 0 ? kNone : of_module(op->module);
}

bool FsdpUnits::within(std::size_t inner, std::size_t outer) const {
  while (units_[inner].depth > units_[outer].depth) inner = units_[inner].parent;
  return inner == outer;
}

// The innermost unit that holds both.
std::size_t FsdpUnits::around(std::size_t a, std::size_t b) const {
  while (!within(b, a)) a = units_[a].parent;
  return a;
}

void FsdpUnits::assign(const Dataflow& flow, const ZeroAnalysis& analysis) {
  for (const StorageId id : analysis.parameters) {
    std::size_t unit = kNone;
    for (const Touch& touch : flow.touches(id)) {
      if (t_.ops[touch.op].phase != Phase::forward) continue;
      const std::size_t user = module_unit(touch.op);
      unit = user == kNone ? 0 : unit == kNone ? user : around(unit, user);
    }
    of_storage_[id] = unit == kNone ? 0 : unit;
    units_[of_storage_[id]].parameters.push_back(id);
  }
  for (const StorageId id : analysis.gradients) {
    std::size_t unit = kNone;
    for (const Touch& touch : flow.touches(id)) {
      const Phase phase = t_.ops[touch.op].phase;
      if (!touch.writes || (phase != Phase::backward && phase != Phase::recompute)) continue;
      const std::size_t user = module_unit(touch.op);
      if (user != kNone) unit = unit == kNone ? user : around(unit, user);
    }
    of_storage_[id] = unit == kNone ? 0 : unit;
    units_[of_storage_[id]].gradients.push_back(id);
  }
}

std::vector<std::size_t> FsdpUnits::of_op(OpId op) const {
  std::set<std::size_t> units;
  if (const std::size_t unit = module_unit(op); unit != kNone) units.insert(unit);
  for (const Use& use : t_.uses_of(t_.ops[op]))
    if (of_storage_[use.storage] != kNone) units.insert(of_storage_[use.storage]);
  return {units.begin(), units.end()};
}

}  // namespace memwall
