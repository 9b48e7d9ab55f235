#include "policies/sharding/deepspeed_module_calls.h"

#include <algorithm>
#include <string_view>

namespace memwall {
namespace {

// "", "layers", "layers.0", "layers.0.mlp": from the outermost module to `path`.
std::vector<std::string> modules_around(const std::string& path) {
  std::vector<std::string> all{""};
  for (std::size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1))
    all.push_back(path.substr(0, dot));
  if (!path.empty()) all.push_back(path);
  return all;
}

bool is_number(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

bool contains_path(std::string_view around, std::string_view path) {
  return around.empty() || path == around || (path.starts_with(around) && path[around.size()] == '.');
}

}  // namespace

ModuleCalls::ModuleCalls(const Trace& trace, const ZeroAnalysis& analysis, FetchPlan& plan,
                         std::int64_t granularity_threshold)
    : t_(trace), analysis_(analysis), plan_(plan), is_parameter_(trace.storages.size(), false) {
  for (const StorageId id : analysis.parameters) is_parameter_[id] = true;
  survey();
  leaves_ = LeafModules(trace, elements_, granularity_threshold);
  plan.leaf_modules = leaves_.count();
  plan.finest_granularity = leaves_.finest();
}

std::vector<StorageId> ModuleCalls::parameters_of(const Op& op) const {
  std::vector<StorageId> used;
  for (const Use& use : t_.uses_of(op))
    if (is_parameter_[use.storage]) used.push_back(use.storage);
  return used;
}

// Work of forward or backward, or what uses parameters there.
bool ModuleCalls::counts(OpId id) const {
  const Op& op = t_.ops[id];
  if (op.phase == Phase::optimizer || std::ranges::binary_search(analysis_.updates, id)) return false;
  return (runs_on_device(op.kind) && op.phase != Phase::unknown) || !parameters_of(op).empty();
}

// Each parameter is of the module that uses it first.
void ModuleCalls::survey() {
  std::set<StorageId> seen;
  for (OpId id = 0; id < t_.ops.size(); ++id) {
    if (!counts(id)) continue;
    const Op& op = t_.ops[id];
    const std::string& path = t_.strings[op.module];
    if (has_ops_.insert(path).second) {
      const std::vector<std::string> around = modules_around(path);
      for (std::size_t i = 1; i < around.size(); ++i) {
        const std::string& above = around[i - 1];
        if (!is_number(std::string_view(around[i]).substr(above.empty() ? 0 : above.size() + 1)))
          has_names_.insert(above);
      }
    }
    for (const StorageId p : parameters_of(op))
      if (seen.insert(p).second) {
        of_module_[path].insert(p);
        elements_[op.module] += plan_.elements.at(p);
      }
  }
}

bool ModuleCalls::is_list(const std::string& path) const {
  return !path.empty() && !has_ops_.contains(path) && !has_names_.contains(path);
}

void ModuleCalls::run() {
  for (std::size_t pass = 0; pass < analysis_.passes.size(); ++pass) {
    const OpId end =
        pass + 1 < analysis_.passes.size() ? analysis_.passes[pass + 1].pass.begin : static_cast<OpId>(t_.ops.size());
    for (OpId id = pass == 0 ? 0 : analysis_.passes[pass].pass.begin; id < end; ++id) {
      if (!counts(id)) continue;
      if (t_.knowledge.modules)
        visit(id, pass);
      else
        visit_alone(id, pass);
    }
    leave(open_again_, 0);
    leave(open_, 0);
    phase_ = Phase::unknown;
  }
  for (std::size_t k = 0; k < plan_.calls.size(); ++k)
    plan_.calls[k].parameters.assign(needed_[k].begin(), needed_[k].end());
}

void ModuleCalls::visit_alone(OpId id, std::size_t pass) {
  const std::vector<StorageId> used = parameters_of(t_.ops[id]);
  if (used.empty()) return;
  const std::size_t around = open_.size();
  begin(open_, "", id, pass);
  plan_.calls.back().ops.push_back(id);
  needed_.back() = {used.begin(), used.end()};
  last_ = id;
  leave(open_, around);
}

void ModuleCalls::visit(OpId id, std::size_t pass) {
  const Op& op = t_.ops[id];
  const bool again = op.phase == Phase::recompute;
  const std::vector<StorageId> used = parameters_of(op);
  const std::string path = leaves_.path(op.module);
  if (!again) leave(open_again_, 0);
  if (!again && op.phase != phase_) {
    leave(open_, 0);
    phase_ = op.phase;
  }
  std::vector<Open>& stack = again ? open_again_ : open_;
  const bool of_none = path.empty() && !leaves_.is_leaf(path);
  if (!of_none || op.phase == Phase::forward || (stack.empty() && !again)) enter(stack, path, id, pass);
  if (of_none) visit_alone(id, pass);
  last_ = id;
  if (of_none) return;
  if (used.empty() || stack.empty()) return;
  plan_.calls[stack.back().call].ops.push_back(id);
  needed_[stack.back().call].insert(used.begin(), used.end());
}

void ModuleCalls::enter(std::vector<Open>& stack, const std::string& path, OpId id, std::size_t pass) {
  std::size_t keep = 0;
  while (keep < stack.size() && contains_path(stack[keep].path, path)) ++keep;
  leave(stack, keep);
  for (const std::string& module : modules_around(path)) {
    const bool is_open = std::ranges::any_of(stack, [&](const Open& open) { return open.path == module; });
    if (is_open || is_list(module) || (module.empty() && &stack == &open_again_ && !path.empty())) continue;
    begin(stack, module, id, pass);
  }
}

void ModuleCalls::begin(std::vector<Open>& stack, const std::string& path, OpId id, std::size_t pass) {
  stack.push_back({path, plan_.calls.size()});
  plan_.hooks.push_back({plan_.calls.size(), false});
  ModuleCall& call = plan_.calls.emplace_back();
  call.phase = t_.ops[id].phase;
  call.pass = pass;
  call.first = call.last = id;
  call.is_leaf = leaves_.is_leaf(path);
  std::set<StorageId>& needed = needed_.emplace_back();
  if (!t_.knowledge.modules) return;
  const auto need = [&](const std::set<StorageId>& parameters) { needed.insert(parameters.begin(), parameters.end()); };
  if (const auto own = of_module_.find(path); own != of_module_.end()) need(own->second);
  if (!call.is_leaf) return;
  const std::string inside = path.empty() ? "" : path + ".";  // modules in it stand together, by name
  for (auto at = of_module_.lower_bound(inside); at != of_module_.end() && at->first.starts_with(inside); ++at)
    need(at->second);
}

void ModuleCalls::leave(std::vector<Open>& stack, std::size_t keep) {
  for (; stack.size() > keep; stack.pop_back()) {
    plan_.calls[stack.back().call].last = last_;
    plan_.hooks.push_back({stack.back().call, true});
  }
}

}  // namespace memwall
