#include "policies/sharding/fsdp_precision.h"

#include <algorithm>
#include <string>
#include <vector>

#include "policies/sharding/fsdp_layout.h"
#include "policies/trace/operator_name.h"
#include "policies/trace/parameter_casts.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr Bytes kWide = 4;  // of one element in fp32

bool is_cast_operator(const Trace& trace, const Op& op) {
  const std::string name = plain_operator_name(operator_of(trace, op));
  return name == "to_copy" || name == "to";
}

}  // namespace

FsdpPrecision::FsdpPrecision(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis,
                             DataType param_dtype, bool adds_up)
    : t_(trace), flow_(flow) {
  find_copies(analysis);
  if (has_copies()) find_optimizer_casts(analysis);
  find_casts(analysis, param_dtype);
  find_made_as(analysis, adds_up);
}

StorageId FsdpPrecision::at_rest(StorageId parameter) const {
  const auto found = copies_.find(parameter);
  return found == copies_.end() ? parameter : found->second;
}

StorageId FsdpPrecision::stands_for(StorageId storage) const {
  const auto found = casts_.find(storage);
  return found == casts_.end() ? storage : found->second;
}

Bytes FsdpPrecision::gathered_element(Bytes own) const { return element_ > 0 ? element_ : own; }

Bytes FsdpPrecision::kept_element(Bytes own) const { return has_copies() ? std::max(own, kWide) : own; }

StorageId FsdpPrecision::made_as(const GradientMade& made) const {
  const auto found = made_as_.find({made.gradient, made.first_write});
  return found == made_as_.end() ? kNoStorage : found->second;
}

// By the kernels that copy them into the parameters, in order; by their names where one kernel does all of an update.
void FsdpPrecision::find_copies(const ZeroAnalysis& analysis) {
  std::multimap<std::string, StorageId> by_label;
  for (const StorageId state : analysis.states) by_label.emplace(t_.strings[t_.storages[state].label], state);
  const auto is_copy = [this](StorageId p, StorageId state) {
    return t_.storages[state].kind == StorageKind::optimizer_state &&
           t_.storages[state].bytes == 2 * t_.storages[p].bytes;
  };
  std::set<StorageId> taken;
  for (const StorageId p : analysis.parameters)
    for (const char* name : {".main", ".master"}) {
      auto [state, last] = by_label.equal_range(t_.strings[t_.storages[p].label] + name);
      while (state != last && (!is_copy(p, state->second) || taken.contains(state->second))) ++state;
      if (state == last) continue;
      copies_[p] = state->second;
      taken.insert(state->second);
    }
  for (const OpId id : analysis.updates) {
    std::vector<StorageId> read, written;
    for (const Use& use : t_.uses_of(t_.ops[id])) (use.access == Access::read ? read : written).push_back(use.storage);
    if (read.size() != written.size() || read.empty()) continue;
    bool copies = true;
    for (std::size_t i = 0; i < read.size(); ++i)
      copies = copies && t_.storages[written[i]].kind == StorageKind::parameter && is_copy(written[i], read[i]);
    if (!copies) continue;
    for (std::size_t i = 0; i < read.size(); ++i) copies_[written[i]] = read[i];
    gone_.insert(id);
  }
}

void FsdpPrecision::find_optimizer_casts(const ZeroAnalysis& analysis) {
  for (const OpId id : analysis.updates) {
    const auto uses = t_.uses_of(t_.ops[id]);
    if (uses.size() != 2 || !is_cast_operator(t_, t_.ops[id])) continue;
    const Use& from = uses[uses[0].access == Access::read ? 0 : 1];
    const Use& to = uses[uses[0].access == Access::read ? 1 : 0];
    if (from.access != Access::read || to.access != Access::write) continue;
    const Storage &gradient = t_.storages[from.storage], &wide = t_.storages[to.storage];
    if (gradient.kind != StorageKind::gradient || wide.preexisting || wide.bytes != 2 * gradient.bytes ||
        flow_.writers(to.storage).front() != id)
      continue;
    wide_[to.storage] = from.storage;
    dropped_.insert(to.storage);
    gone_.insert(id);
  }
}

void FsdpPrecision::find_casts(const ZeroAnalysis& analysis, DataType type) {
  const Bytes element = bytes_of(type);
  if (element == 0) return;
  element_ = element;
  std::set<StorageId> parameters(analysis.parameters.begin(), analysis.parameters.end()), other;
  for (const StorageId p : analysis.parameters)
    if (sharded_element(t_, flow_, p) != element) other.insert(p);
  if (other.empty()) return;
  for (StorageId id = 0; id < t_.storages.size(); ++id) {
    if (!is_cast_of_parameter(t_, flow_, id)) continue;
    const OpId cast = flow_.writers(id).front();
    for (const Use& use : t_.uses_of(t_.ops[cast]))
      if (use.access == Access::read && parameters.contains(use.storage) &&
          t_.storages[id].bytes * kWide == t_.storages[use.storage].bytes * element) {
        casts_[id] = use.storage;
        dropped_.insert(id);
        gone_.insert(cast);
      }
  }
  if (casts_.empty())
    throw UsageError("Policy 'fsdp': param_dtype=" + std::string(to_string(type)) + ": trace '" + t_.name +
                     "' computes with " + std::to_string(other.size()) +
                     " parameters in another type, and no policy predicts another data type; expected a step in that "
                     "type, or under autocast.");
}

StorageId FsdpPrecision::only_input(OpId op, StorageId to, StorageId but) const {
  StorageId input = kNoStorage;
  for (const Use& use : t_.uses_of(t_.ops[op])) {
    if (use.access == Access::write) {
      if (use.storage != to) return kNoStorage;
    } else if (use.storage != but) {
      if (input != kNoStorage && input != use.storage) return kNoStorage;
      input = use.storage;
    }
  }
  return input;
}

// Is it made in this trace, last used by `op`, and then freed?
bool FsdpPrecision::ends_with(StorageId storage, OpId op) const {
  return !t_.storages[storage].preexisting && flow_.touches(storage).back().op == op && flow_.free(storage) != kNoOp &&
         t_.storages[storage].kind != StorageKind::parameter;
}

void FsdpPrecision::find_made_as(const ZeroAnalysis& analysis, bool adds_up) {
  for (const BackwardPass& pass : analysis.passes)
    for (const GradientMade& made : pass.made) {
      if (made.first_write != made.ready || (made.accumulates && adds_up)) continue;
      const Bytes elements = t_.storages[made.gradient].bytes / sharded_element(t_, flow_, made.gradient);
      StorageId from = only_input(made.ready, made.gradient, made.gradient);
      const bool casts = is_cast_operator(t_, t_.ops[made.ready]);
      if (from == kNoStorage || !ends_with(from, made.ready) || (casts ? !drops_casts() : !made.accumulates)) continue;
      std::set<OpId> gone{made.ready};
      if (!casts && drops_casts()) {  // what is added has been cast before
        const auto writers = flow_.writers(from);
        const OpId cast = writers.size() == 1 ? writers.front() : kNoOp;
        if (cast != kNoOp && is_cast_operator(t_, t_.ops[cast]))
          if (const StorageId narrow = only_input(cast, from, kNoStorage);
              narrow != kNoStorage && ends_with(narrow, cast)) {
            gone.insert(cast);
            dropped_.insert(from);
            from = narrow;
          }
      }
      const Bytes bytes = t_.storages[from].bytes;
      if (bytes != elements * 2 && bytes != elements * kWide) continue;
      made_as_[{made.gradient, made.first_write}] = from;
      gone_.insert(gone.begin(), gone.end());
    }
}

void FsdpPrecision::apply(TraceEdit& edit) const {
  const auto drop = [&](StorageId id) {
    edit.tables().storages[id].preexisting = false;
    edit.resize(id, 0);
    for (const OpId end : {flow_.alloc(id), flow_.free(id)})
      if (end != kNoOp) edit.remove(end);
  };
  for (const OpId id : gone_) edit.remove(id);
  for (const StorageId id : dropped_) drop(id);
  for (const auto& [key, from] : made_as_) edit.remove(flow_.free(from));
  for (const auto& [wide, gradient] : wide_)
    for (const Touch& touch : flow_.touches(wide))
      if (!gone_.contains(touch.op)) edit.repoint(touch.op, wide, gradient);
  for (const auto& [parameter, copy] : copies_) {
    drop(parameter);
    edit.tables().storages[copy].kind = StorageKind::parameter;
    for (const Touch& touch : flow_.touches(parameter))
      if (t_.ops[touch.op].phase == Phase::optimizer && !gone_.contains(touch.op))
        edit.repoint(touch.op, parameter, copy);
  }
}

}  // namespace memwall
