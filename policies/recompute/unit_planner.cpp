#include "policies/recompute/unit_planner.h"

#include <algorithm>

#include "policies/trace/described.h"
#include "policies/trace/operator_name.h"

namespace memwall {
namespace {

// Code that a compiler made, whatever communicates between it.
bool is_compiled(const Trace& t, const RecomputeUnit& unit) {
  const auto is_kernel = [&](OpId id) { return t.ops[id].kind == OpKind::kernel; };
  const auto is_native = [&](OpId id) { return is_kernel(id) && t.ops[id].dispatch != Dispatch::compiled; };
  return std::ranges::any_of(unit.ops, is_kernel) && std::ranges::none_of(unit.ops, is_native);
}

}  // namespace

UnitPlanner::UnitPlanner(const Trace& trace, const Dataflow& flow, const Pass& pass, const RecomputeUnit& unit,
                         const RecomputeRules& rules, const ParameterGathers& gathers, const SavedStorages& saved,
                         std::vector<OpId>& kept_until)
    : t_(trace),
      flow_(flow),
      gathers_(gathers),
      saved_(saved),
      pass_(pass),
      unit_(unit),
      rules_(rules),
      kept_until_(kept_until) {
  plan_.name = unit.name;
  plan_.joined = unit.joined;
  plan_.compiled = is_compiled(trace, unit);
  if (rules.as_framework) prefix_ = unit_prefix(trace, unit, rules.early_stop);
  plan_.as_framework = prefix_.known;
}

UnitPlan UnitPlanner::run() && {
  gather_written();
  choose_dropped();
  if (!prefix_.known && !plan_.compiled && !rules_.kept_results.empty()) guess_prefix();
  const bool by_prefix = prefix_.ops > 0;
  if (by_prefix) choose_remade();
  if (plan_.position != kNoOp) {
    by_prefix ? rerun_prefix() : rerun_closure();
    refuse_side_effects();
  }
  if (!plan_.refusal.empty()) {
    UnitPlan refused;
    refused.name = plan_.name;
    refused.joined = plan_.joined;
    refused.refusal = plan_.refusal;
    refused.as_framework = plan_.as_framework;
    refused.compiled = plan_.compiled;
    return refused;
  }
  plan_.rerun.assign(rerun_.begin(), rerun_.end());
  plan_.gathers = gathers_to_repeat(t_, gathers_, rerun_, plan_.position);
  for (const StorageId s : plan_.dropped) plan_.dropped_bytes += t_.storages[s].bytes;
  if (by_prefix) {
    place_remade();
    place_releases();
    place_casts();
    keep_frame();
  } else {
    keep_inputs();
    release_to_nodes();
  }
  return std::move(plan_);
}

bool UnitPlanner::inside(OpId id) const { return std::binary_search(unit_.ops.begin(), unit_.ops.end(), id); }

bool UnitPlanner::is_dropped(StorageId s) const {
  return std::binary_search(plan_.dropped.begin(), plan_.dropped.end(), s);
}

bool UnitPlanner::has_kept_result(OpId id) const {
  return std::binary_search(rules_.kept_results.begin(), rules_.kept_results.end(), id);
}

void UnitPlanner::refuse(const std::string& reason) {
  if (plan_.refusal.empty()) plan_.refusal = reason;
}

// Running statistics and counters: an op reads and writes what was there before the step.
bool UnitPlanner::updates_itself(OpId id, StorageId s) const {
  bool reads = false, writes = false;
  for (const Use& use : t_.uses_of(t_.ops[id])) {
    if (use.storage != s) continue;
    (use.access == Access::read ? reads : writes) = true;
  }
  return reads && writes;
}

void UnitPlanner::gather_written() {
  for (const OpId id : unit_.ops) {
    if (t_.ops[id].module != 0) modules_.insert(t_.ops[id].module);
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (use.access == Access::write) written_.insert(use.storage);
      if (use.saved) kept_.insert(use.storage);
    }
  }
}

bool UnitPlanner::may_drop(StorageId s) const {
  if (kept_until_[s] != 0 || !is_saved_activation(t_, flow_, pass_, s)) return false;
  if (prefix_.known && !is_kept_by_autograd(s)) return false;
  for (const Touch& touch : flow_.touches(s)) {
    if (touch.writes && (!inside(touch.op) || has_kept_result(touch.op))) return false;
    if (touch.op < pass_.backward ? !inside(touch.op) && !rules_.drop_outputs
                                  : t_.ops[touch.op].phase == Phase::forward)
      return false;
  }
  return true;
}

OpId UnitPlanner::point_before(OpId reader) const { return insertion_point(t_, saved_.first_of_node(reader)); }

void UnitPlanner::choose_dropped() {
  OpId first_reader = kNoOp;
  for (const StorageId s : written_) {
    if (!may_drop(s)) continue;
    plan_.dropped.push_back(s);
    if (!is_read_by_backward(s)) continue;
    for (const Touch& touch : flow_.touches(s))
      if (touch.op >= pass_.backward) first_reader = std::min(first_reader, touch.op);
  }
  if (first_reader != kNoOp) plan_.position = point_before(first_reader);
}

void UnitPlanner::refuse_side_effects() {
  if (!plan_.refusal.empty() || rerun_.empty()) return;
  std::set<std::string> random, statistics;
  for (const OpId id : rerun_) {
    const Op& op = t_.ops[id];
    const std::string& name = operator_of(t_, op);
    if (op.kind == OpKind::collective && !rules_.allow_collectives)
      refuse(described_op(t_, id) + " communicates with other ranks, and would again (allow_collectives=1 permits it)");
    if (op.graph_member) refuse(described_op(t_, id) + " is a node of a CUDA graph and cannot be re-run alone");
    if (op.placed) refuse(described_op(t_, id) + " was launched before the capture began");
    if (draws_random_numbers(op, t_)) random.insert(name);
    for (const Use& use : t_.uses_of(op))
      if (use.access == Access::write && t_.storages[use.storage].preexisting) statistics.insert(name);
  }
  refuse_waits();
  plan_.random.assign(random.begin(), random.end());
  plan_.statistics.assign(statistics.begin(), statistics.end());
}

// A host that waits for a value (`.item()`) may branch on it: re-running it is not our guess to make. What a policy put
// in waits for no value.
void UnitPlanner::refuse_waits() {
  const std::uint16_t thread = t_.ops[*rerun_.begin()].thread;
  for (OpId id = std::max(*rerun_.begin(), unit_.ops.front()); id <= *rerun_.rbegin(); ++id) {
    const Op& op = t_.ops[id];
    const bool upload = op.kind == OpKind::copy && op.from != op.to && t_.places[op.to] == "hbm";
    if (op.thread == thread && op.wait_for != WaitFor::nothing && !op.added && !upload && !op.graph_member && !op.placed)
      refuse(described_op(t_, id) + " makes the host wait for the device, as .item() does");
  }
}

// --- by what backward reads

void UnitPlanner::want(OpId id) {
  if (rerun_.insert(id).second) open_.push_back(id);
}

void UnitPlanner::rerun_closure() {
  for (const StorageId s : plan_.dropped)
    if (is_read_by_backward(s))
      for (const OpId writer : flow_.writers(s)) want(writer);
  if (!rules_.early_stop && !plan_.compiled)
    for (const OpId id : unit_.ops) want(id);
  close_over_inputs();
  if (!plan_.refusal.empty() || rerun_.empty()) return;
  // Kernels that belong to a re-run operator but carry no dataflow of their own.
  const OpId first = *rerun_.begin(), last = *rerun_.rbegin();
  const auto next =
      std::find_if(unit_.ops.begin(), unit_.ops.end(), [&](OpId id) { return id > last && t_.ops[id].use_count > 0; });
  for (auto id = std::lower_bound(unit_.ops.begin(), unit_.ops.end(), first); id != next; ++id)
    if (t_.ops[*id].use_count == 0 && (*id < last || t_.ops[*id].operator_name == t_.ops[last].operator_name))
      rerun_.insert(*id);
}

void UnitPlanner::close_over_inputs() {
  while (!open_.empty() && plan_.refusal.empty()) {
    const OpId id = open_.back();
    open_.pop_back();
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (use.access == Access::write) {
        want_chain(use.storage, use.version - 1);  // in place, or into a part: on top of what was there
      } else if (must_rerun_for(id, use)) {
        want_chain(use.storage, use.version);
      }
    }
  }
}

void UnitPlanner::want_chain(StorageId s, std::uint32_t version) {
  if (t_.storages[s].preexisting) return;  // written a second time
  for (std::uint32_t v = 1; v <= version; ++v) {
    const OpId writer = flow_.writer(s, v);
    if (writer >= pass_.begin && writer < pass_.backward && t_.ops[writer].phase == Phase::forward)
      want(writer);
    else
      refuse(described_storage(t_, s) + " is also written by " + described_op(t_, writer) +
             ", which is not of this forward pass");
  }
}

// Is the content that `id` reads gone at the place of the re-run, so that its maker must be re-run?
bool UnitPlanner::must_rerun_for(OpId id, const Use& use) {
  const StorageId s = use.storage;
  if (is_dropped(s)) return true;
  if (gathers_.gather_of(s) != kNoOp) return false;  // gathers_to_repeat says which are gathered again
  const bool current = flow_.version_before(s, plan_.position) == use.version;
  const OpId free = flow_.free(s);
  if (current && (free == kNoOp || free >= plan_.position || kept_until_[s] >= plan_.position)) return false;
  const OpId writer = flow_.writer(s, use.version);
  if (writer != kNoOp && inside(writer)) return !(current && has_kept_result(writer));
  if (current) return false;  // can be kept
  if (t_.storages[s].preexisting) {
    if (!updates_itself(id, s))
      refuse(described_op(t_, id) + " reads " + described_storage(t_, s) +
             ", which is overwritten before the recompute");
    return false;
  }
  return true;
}

void UnitPlanner::keep_inputs() {
  for (const OpId id : plan_.rerun)
    for (const Use& use : t_.uses_of(t_.ops[id])) {
      if (use.access == Access::write || gathers_.gather_of(use.storage) != kNoOp) continue;
      const OpId writer = flow_.writer(use.storage, use.version);
      if (writer != kNoOp && rerun_.contains(writer)) continue;
      OpId& until = kept_until_[use.storage];
      if (until == 0 && flow_.free(use.storage) < plan_.position) plan_.kept_bytes += t_.storages[use.storage].bytes;
      until = std::max(until, plan_.position);
    }
}

}  // namespace memwall
