#include "policies/sharding/fsdp_step.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "policies/sharding/fsdp_clipping.h"
#include "policies/sharding/fsdp_flat.h"
#include "policies/sharding/fsdp_gathers.h"
#include "policies/sharding/fsdp_hooks.h"
#include "policies/sharding/fsdp_layout.h"
#include "policies/sharding/fsdp_program.h"
#include "policies/sharding/fsdp_reduction.h"
#include "policies/sharding/fsdp_units.h"
#include "policies/sharding/fsdp_wrapping.h"
#include "policies/trace/described.h"
#include "sim/error.h"

namespace memwall {
namespace {

// The stream of the kernels that read parameters: most of them.
std::uint16_t compute_stream(const Trace& trace, const ZeroAnalysis& analysis) {
  std::vector<std::size_t> ops(trace.streams.size(), 0);
  std::vector<bool> is_parameter(trace.storages.size(), false);
  for (const StorageId id : analysis.parameters) is_parameter[id] = true;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::kernel)
      ops[op.stream] +=
          std::ranges::any_of(trace.uses_of(op), [&](const Use& use) { return is_parameter[use.storage]; });
  return static_cast<std::uint16_t>(std::ranges::max_element(ops) - ops.begin());
}

class FsdpStep {
 public:
  FsdpStep(TraceEdit& edit, const Dataflow& flow, const ZeroAnalysis& analysis, const FsdpUnits& units,
           const FsdpLayout& layout, const FsdpPrecision& precision, const FsdpSettings& settings, const Pricer& pricer)
      : t_(edit.base()),
        analysis_(analysis),
        layout_(layout),
        precision_(precision),
        settings_(settings),
        program_(edit, pricer),
        units_(units),
        shards_(settings.replicas > 1 ? program_.group("fsdp.shard", settings.shards(), 1)
                                      : program_.all_ranks("fsdp", settings.ranks)),
        replicas_(settings.replicas > 1 ? program_.group("fsdp.replicate", settings.replicas, settings.shards())
                                        : ShardingGroup{}),
        compute_(compute_stream(t_, analysis)),
        is_update_(t_.ops.size(), false) {
    if (settings.version == 1) {
      gathers_ = std::make_unique<FlatGathers>(program_, units, layout, precision, settings, shards_, compute_);
      reduction_ = std::make_unique<FlatReduction>(program_, flow, units, layout, precision, settings, shards_,
                                                   replicas_, compute_);
    } else {
      gathers_ = std::make_unique<FsdpGathers>(program_, units, layout, precision, settings, shards_, compute_);
      reduction_ = std::make_unique<FsdpReduction>(program_, flow, units, layout, precision, settings, shards_,
                                                   replicas_, compute_);
    }
    for (const OpId id : analysis.updates) is_update_[id] = true;
  }

  FsdpSummary run() {
    for (const BackwardPass& pass : analysis_.passes)
      for (const GradientMade& made : pass.made) begun_.emplace(made.first_write, &made);
    if (settings_.wraps) wrap_units(program_, units_, layout_, settings_, compute_);
    const std::vector<FsdpHook> hooks = fsdp_hooks(t_, analysis_, units_, settings_);
    for (std::size_t i = 0; i < hooks.size(); ++i) {
      repoint_until(hooks[i].point.op + (hooks[i].point.after ? 1 : 0));
      if (hooks[i].kind == FsdpHookKind::pre_forward) find_next_units(hooks, i);
      call(hooks[i]);
    }
    repoint_until(static_cast<OpId>(t_.ops.size()));
    norms_ = sum_gradient_norms(program_, analysis_, layout_, precision_, settings_, shards_, compute_);
    return summary();
  }

 private:
  void call(const FsdpHook& hook) {
    if (hook.kind != FsdpHookKind::end_backward && !units_.all()[hook.unit].parameters.empty())
      program_.charge(settings_.hook);
    switch (hook.kind) {
      case FsdpHookKind::pre_forward:
        return pre_forward(hook);
      case FsdpHookKind::post_forward:
        return post_forward(hook);
      case FsdpHookKind::pre_backward:
        return pre_backward(hook);
      case FsdpHookKind::post_backward:
        return post_backward(hook);
      case FsdpHookKind::end_backward:
        return end_backward(hook);
    }
  }

  void pre_forward(const FsdpHook& hook) {
    if (hook.unit == 0 && !hook.rerun) gathers_->begin_forward(hook.point);
    gathers_->unshard(hook.unit, hook.point);
    gathers_->wait_for_unshard(hook.unit, hook.point, true, hook.streams);
    for (const std::size_t next : next_units_) gathers_->unshard(next, hook.point);
  }

  // Of set_modules_to_forward_prefetch: the units whose calls come next.
  void find_next_units(const std::vector<FsdpHook>& hooks, std::size_t present) {
    next_units_.clear();
    for (std::size_t i = present + 1; i < hooks.size(); ++i) {
      if (next_units_.size() == static_cast<std::size_t>(settings_.forward_prefetch)) return;
      if (hooks[i].pass != hooks[present].pass || hooks[i].kind == FsdpHookKind::pre_backward) return;
      if (hooks[i].kind == FsdpHookKind::pre_forward) next_units_.push_back(hooks[i].unit);
    }
  }

  void post_forward(const FsdpHook& hook) {
    gathers_->reshard_after_forward(hook.unit, hook.point, hook.streams);
    if (hook.rerun) return;
    if (!units_.all()[hook.unit].parameters.empty()) order_.push_back(hook.unit);
    if (hook.unit == 0) gathers_->end_forward(hook.point);
  }

  void pre_backward(const FsdpHook& hook) {
    gathers_->unshard(hook.unit, hook.point);
    gathers_->wait_for_unshard(hook.unit, hook.point, false, hook.streams);
    began_.insert(hook.unit);
    if (!settings_.prefetches_after_backward) prefetch_backward(hook);
  }

  // Explicit prefetch: what comes next in the reverse order of forward.
  void prefetch_backward(const FsdpHook& hook) {
    const auto last = std::find(order_.rbegin(), order_.rend(), hook.unit);
    if (last == order_.rend()) return;  // a root without parameters
    auto next = last + 1;
    for (int ahead = 0; ahead < settings_.backward_prefetch && next != order_.rend(); ++ahead, ++next)
      if (settings_.version == 2 || !began_.contains(*next)) gathers_->unshard(*next, hook.point);
  }

  bool reduces(const FsdpHook& hook) const {
    return settings_.reduces_each_pass || analysis_.passes[hook.pass].before_update;
  }
  bool is_last(const FsdpHook& hook) const { return analysis_.passes[hook.pass].before_update; }
  bool gives_back(const FsdpHook& hook) const {
    return (settings_.frees_without_reduction || reduces(hook)) &&
           (settings_.gives_back_between_passes || is_last(hook));
  }

  // Gradients are taken before the parameters are given back, and reduced behind that.
  void post_backward(const FsdpHook& hook) {
    if (gives_back(hook)) gathers_->reshard(hook.unit, hook.point, hook.streams);
    if (settings_.prefetches_after_backward) prefetch_backward(hook);
    reduction_->sum_over_replicas(settings_.all_reduces_each_pass || is_last(hook));
    reduction_->post_backward(hook.unit, hook.point, reduces(hook), hook.streams);
  }

  void end_backward(const FsdpHook& hook) {
    reduction_->end_backward(hook.point);
    gathers_->end_forward(hook.point);
    for (std::size_t unit = 0; unit < units_.all().size(); ++unit) {  // asked for ahead, or without a backward
      gathers_->wait_for_unshard(unit, hook.point, false, hook.streams);
      if (gives_back(hook)) gathers_->reshard(unit, hook.point, hook.streams);
    }
    order_.clear();
    began_.clear();
  }

  // Ops up to `end` work on what is gathered now.
  void repoint_until(OpId end) {
    for (; next_op_ < end; ++next_op_) {
      const Op& op = t_.ops[next_op_];
      for (auto [made, last] = begun_.equal_range(next_op_); made != last; ++made)
        reduction_->begin_gradient(*made->second);
      if (is_update_[next_op_] || op.phase == Phase::optimizer || op.phase == Phase::unknown) continue;
      if (precision_.is_gone(next_op_)) continue;
      std::set<StorageId> used;
      for (const Use& use : t_.uses_of(op)) {
        const StorageId parameter = precision_.stands_for(use.storage);
        if (units_.of_storage(parameter) != FsdpUnits::kNone && t_.storages[parameter].kind == StorageKind::parameter)
          used.insert(use.storage);
      }
      for (const StorageId storage : used) {
        const StorageId parameter = precision_.stands_for(storage);
        const StorageId whole = gathers_->whole(parameter);
        if (whole == kNoStorage)
          throw UsageError("Policy 'fsdp' cannot shard trace '" + t_.name + "': " + described_op(t_, next_op_) +
                           " uses parameter " + described_storage(t_, parameter) +
                           " outside of its unit's forward and backward, where it is not gathered; expected its use "
                           "within them, or other units=.");
        program_.edit().repoint(next_op_, storage, whole);
      }
    }
  }

  FsdpSummary summary() const {
    FsdpSummary s;
    for (const FsdpUnit& unit : units_.all()) s.units += !unit.parameters.empty();
    s.gathers = program_.count(CollectiveKind::all_gather);
    s.reduce_scatters = program_.count(CollectiveKind::reduce_scatter);
    s.norms = norms_;
    s.all_reduces = program_.count(CollectiveKind::all_reduce) - norms_.over_shards - norms_.over_layers;
    s.gathers_sent = program_.sent(CollectiveKind::all_gather);
    s.reduce_scatters_sent = program_.sent(CollectiveKind::reduce_scatter);
    s.all_reduces_sent = program_.sent(CollectiveKind::all_reduce);
    s.largest_gather = gathers_->largest_buffer();
    s.largest_reduction = reduction_->largest_input();
    return s;
  }

  const Trace& t_;
  const ZeroAnalysis& analysis_;
  const FsdpLayout& layout_;
  const FsdpPrecision& precision_;
  const FsdpSettings& settings_;
  FsdpProgram program_;
  const FsdpUnits& units_;
  ShardingGroup shards_, replicas_;
  std::uint16_t compute_;
  std::unique_ptr<FsdpParameters> gathers_;
  std::unique_ptr<FsdpReduction> reduction_;
  std::vector<bool> is_update_;
  std::vector<std::size_t> order_, next_units_;     // units as forward left them; those that forward comes to next
  std::set<std::size_t> began_;                     // units whose backward this pass has come to
  std::multimap<OpId, const GradientMade*> begun_;  // by the op that makes them
  OpId next_op_ = 0;
  NormSums norms_;
};

}  // namespace

FsdpSummary apply_fsdp(TraceEdit& edit, const Dataflow& flow, const ZeroAnalysis& analysis, const FsdpUnits& units,
                       const FsdpLayout& layout, const FsdpPrecision& precision, const FsdpSettings& settings,
                       const Pricer& pricer) {
  return FsdpStep(edit, flow, analysis, units, layout, precision, settings, pricer).run();
}

}  // namespace memwall
