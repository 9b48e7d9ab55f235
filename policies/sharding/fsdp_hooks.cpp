#include "policies/sharding/fsdp_hooks.h"

#include <algorithm>
#include <optional>

namespace memwall {
namespace {

// Ops [first, last] of one call of a module.
struct ModuleCall {
  OpId first = kNoOp, last = kNoOp;
  bool has_backward = false;
  std::set<std::uint16_t> streams{};
};

// Through which ops of forward a gradient comes back: those that read trained parameters, and what such ops make. By op
// the first one of forward whose result it reads and that is such an op; kNoOp: there is none.
std::vector<OpId> first_inputs_with_gradient(const Trace& t) {
  std::vector<bool> trained(t.storages.size(), false), carries(t.ops.size(), false);
  for (const Op& op : t.ops)
    for (const Use& use : t.uses_of(op))
      if (op.phase == Phase::optimizer && use.access == Access::write) trained[use.storage] = true;
  std::vector<OpId> writer(t.storages.size(), kNoOp), first(t.ops.size(), kNoOp);
  for (OpId id = 0; id < t.ops.size(); ++id) {
    if (t.ops[id].phase != Phase::forward) continue;
    for (const Use& use : t.uses_of(t.ops[id])) {
      // What is written into keeps the rest of its content (masked rows of an embedding).
      if (use.access == Access::write && use.version <= 1) continue;
      const bool is_parameter = t.storages[use.storage].kind == StorageKind::parameter;
      const OpId made = is_parameter ? kNoOp : writer[use.storage];
      if (made != kNoOp && carries[made]) first[id] = std::min(first[id], made);
      if (first[id] != kNoOp || (is_parameter && trained[use.storage])) carries[id] = true;
    }
    for (const Use& use : t.uses_of(t.ops[id]))
      if (use.access == Access::write) writer[use.storage] = id;
  }
  return first;
}

class FsdpHookFinder {
 public:
  FsdpHookFinder(const Trace& trace, const ZeroAnalysis& analysis, const FsdpUnits& units, const FsdpSettings& settings)
      : t_(trace),
        analysis_(analysis),
        units_(units),
        settings_(settings),
        of_(trace.ops.size()),
        uses_shared_(trace.ops.size(), false),
        first_inputs_(first_inputs_with_gradient(trace)) {
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      if (!concerns(id)) continue;
      of_[id] = units.of_op(id);
      uses_shared_[id] = uses_what_is_sharded(id);
    }
  }

  std::vector<FsdpHook> run() {
    for (std::size_t p = 0; p < analysis_.passes.size(); ++p) visit(p);
    std::ranges::stable_sort(hooks_, [this](const FsdpHook& a, const FsdpHook& b) { return order(a) < order(b); });
    return std::move(hooks_);
  }

 private:
  static bool opens(FsdpHookKind kind) {
    return kind == FsdpHookKind::pre_forward || kind == FsdpHookKind::pre_backward;
  }

  // Place, then outer units before inner ones where calls begin and behind them where they end.
  std::pair<std::uint64_t, int> order(const FsdpHook& hook) const {
    const int depth = units_.all()[hook.unit].depth;
    const int last = hook.by_root ? 1 : hook.kind == FsdpHookKind::end_backward ? 2 : -depth;
    const int inner = opens(hook.kind) ? depth : last;
    return {2 * std::uint64_t{hook.point.op} + (hook.point.after ? 1 : 0), inner};
  }

  void visit(std::size_t number) {
    const BackwardPass& pass = analysis_.passes[number];
    if (pass.last_backward == kNoOp) return;
    add_forward(number, pass);
    add_backward(number, pass);
  }

  void add(FsdpHookKind kind, std::size_t unit, std::size_t pass, InsertionPoint point,
           const std::set<std::uint16_t>& streams, bool rerun = false) {
    hooks_.push_back({kind, unit, pass, rerun, point, streams});
  }

  void add_call(std::size_t unit, std::size_t pass, const ModuleCall& call, bool rerun) {
    add(FsdpHookKind::pre_forward, unit, pass, {call.first, false}, call.streams, rerun);
    add(FsdpHookKind::post_forward, unit, pass, {call.last, true}, call.streams, rerun);
  }

  void add_forward(std::size_t number, const BackwardPass& pass) {
    const OpId end = forward_end(pass.pass);
    add_call(0, number, {pass.pass.begin, end, false, streams_between(pass.pass.begin, end + 1)}, false);
    for (std::size_t unit = 1; unit < units_.all().size(); ++unit) {
      if (units_.all()[unit].parameters.empty()) continue;
      for (const ModuleCall& call : calls(unit, pass.pass.begin, end + 1)) add_call(unit, number, call, false);
    }
  }

  OpId forward_end(const Pass& pass) const {
    OpId end = pass.begin;
    for (OpId id = pass.begin; id < pass.backward; ++id)
      if (t_.ops[id].phase == Phase::forward) end = id;
    return end;
  }

  void add_backward(std::size_t number, const BackwardPass& pass) {
    const OpId begin = backward_begin(pass), end = pass.last_backward;
    const bool delays = settings_.version == 1 && settings_.forward_prefetch > 0;
    OpId before = end;  // with `delays`: where the backward of the unit in front ends
    add(FsdpHookKind::pre_backward, 0, number, {begin, false}, {});
    for (std::size_t unit = 1; unit < units_.all().size(); ++unit) {
      if (units_.all()[unit].parameters.empty()) continue;
      std::optional<ModuleCall> whole;
      for (const ModuleCall& call : calls(unit, rerun_begin(pass.pass), end + 1)) {
        if (call.has_backward && !whole) {
          whole = call;
        } else if (whole) {
          whole->last = call.last;
          whole->streams.insert(call.streams.begin(), call.streams.end());
        } else {
          add_call(unit, number, call, true);
        }
      }
      if (!whole) continue;
      add(FsdpHookKind::pre_backward, unit, number, {whole->first, false}, whole->streams);
      const bool by_root = settings_.version == 2 && !inputs_need_gradient(unit, pass.pass);
      const OpId own = std::max(whole->last, last_ready(unit, pass));
      const OpId last = by_root ? end : delays ? std::max(own, before) : own;
      before = own;
      add(FsdpHookKind::post_backward, unit, number, {last, true}, whole->streams);
      hooks_.back().by_root = by_root;
    }
    const std::set<std::uint16_t> streams = streams_between(pass.pass.backward, end + 1);
    add(FsdpHookKind::post_backward, 0, number, {end, true}, streams);
    add(FsdpHookKind::end_backward, 0, number, {end, true}, streams);
  }

  // A re-run may stand before the pass's first op of the phase backward.
  OpId rerun_begin(const Pass& pass) const { return std::min<OpId>(pass.backward, forward_end(pass) + 1); }

  // The gradient of the loss comes before that of the network's output, which runs the root's hook.
  OpId backward_begin(const BackwardPass& pass) const {
    for (OpId id = rerun_begin(pass.pass); id <= pass.last_backward; ++id)
      if (const Phase phase = t_.ops[id].phase; phase == Phase::backward || phase == Phase::recompute)
        if (t_.ops[id].module != 0 && runs_on_device(t_.ops[id].kind)) return id;
    return pass.pass.backward;
  }

  OpId last_ready(std::size_t unit, const BackwardPass& pass) const {
    OpId last = 0;
    for (const GradientMade& made : pass.made)
      if (units_.of_storage(made.gradient) == unit) last = std::max(last, made.ready);
    return last;
  }

  bool inputs_need_gradient(std::size_t unit, const Pass& pass) const {
    for (const ModuleCall& call : calls(unit, pass.begin, forward_end(pass) + 1))
      for (OpId id = call.first; id <= call.last; ++id)
        if (first_inputs_[id] != kNoOp && first_inputs_[id] < call.first && is_inside(id, unit)) return true;
    return false;
  }

  bool is_inside(OpId id, std::size_t unit) const {
    return std::ranges::any_of(of_[id], [&](std::size_t u) { return units_.within(u, unit); });
  }

  bool concerns(OpId id) const {
    const Op& op = t_.ops[id];
    return runs_on_device(op.kind) &&
           (op.phase == Phase::forward || op.phase == Phase::recompute || op.phase == Phase::backward);
  }

  std::set<std::uint16_t> streams_between(OpId begin, OpId end) const {
    std::set<std::uint16_t> streams;
    for (OpId id = begin; id < end; ++id)
      if (uses_shared_[id]) streams.insert(t_.ops[id].stream);
    return streams;
  }

  bool uses_what_is_sharded(OpId id) const {
    return std::ranges::any_of(t_.uses_of(t_.ops[id]),
                               [this](const Use& use) { return units_.of_storage(use.storage) != FsdpUnits::kNone; });
  }

  std::vector<ModuleCall> calls(std::size_t unit, OpId begin, OpId end) const {
    std::vector<ModuleCall> calls;
    bool open = false;
    for (OpId id = begin; id < end; ++id) {
      const std::vector<std::size_t>& of = of_[id];
      if (of.empty()) continue;
      const bool inside = is_inside(id, unit);
      const bool around = std::ranges::any_of(of, [&](std::size_t u) { return units_.within(unit, u); });
      if (!inside && !around) open = false;
      if (!inside) continue;
      if (!open) calls.push_back({id, id, false, {}});
      open = true;
      calls.back().last = id;
      calls.back().has_backward |= t_.ops[id].phase == Phase::backward;
      if (uses_shared_[id]) calls.back().streams.insert(t_.ops[id].stream);
    }
    return calls;
  }

  const Trace& t_;
  const ZeroAnalysis& analysis_;
  const FsdpUnits& units_;
  const FsdpSettings& settings_;
  std::vector<std::vector<std::size_t>> of_;  // by op: its units; empty where it runs outside of forward and backward
  std::vector<bool> uses_shared_;
  std::vector<OpId> first_inputs_;
  std::vector<FsdpHook> hooks_;
};

}  // namespace

std::vector<FsdpHook> fsdp_hooks(const Trace& trace, const ZeroAnalysis& analysis, const FsdpUnits& units,
                                 const FsdpSettings& settings) {
  return FsdpHookFinder(trace, analysis, units, settings).run();
}

}  // namespace memwall
