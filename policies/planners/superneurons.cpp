// Cheap layers are computed again, outputs of convolutions wait on the host where memory is short.
//
// Wang, Ye, Zhao, Wu, Li, Song, Xu, Kraska 2018, "SuperNeurons: Dynamic GPU Memory Management for Training Deep Neural
// Networks" (PPoPP 2018); details from memory of the paper, held against src/recompute.cpp of its published program
// (linnanwang/superneurons-release, commit 1396438):
//   checkpoints  layers that compute much; what they make stays. Here matrix products, convolutions and attention.
//   segments     what runs between two checkpoints is dropped in forward, and computed again in backward:
//     speed      once, before the segment's first backward, and all of it kept: where that takes no more than l_peak
//     memory     anew for each layer whose backward needs it, what is only on the way dropped at once: else
//   l_peak       the most that backward of a single layer touches: less than that no plan can take
//   tensor pool  outputs of convolutions go to the host, the least recently used first, and only as many as do not fit
// Liveness analysis, the first of their three parts, is what PyTorch's reference counts do already.
// Deviations: a layer is an op; what a layer's backward needs is made again before its first use in backward, and stays
// until the last, so that two layers that share it make it once; copies are placed in a ledger of links, and queue
// (swap_schedule.h), where the original evicts as it allocates; the choice of convolution algorithms by free memory is
// not part of a memory plan. What cannot run again stays, and so does what would take a checkpoint layer with it, whose
// output the program has given back by then. A re-run that starts from what an earlier segment has dropped makes that
// again, too. All segments are computed again once the step does not keep to the budget, as in the original, which does
// so always; copies alone heed the budget.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "policies/planners/host_transfer.h"
#include "policies/planners/planner.h"
#include "policies/planners/swap_schedule.h"
#include "policies/profile/rerun_ops.h"
#include "policies/trace/passes_in_turn.h"
#include "policies/trace/rerun_rules.h"

namespace memwall {
namespace {

constexpr std::size_t kMostRerunOps = 512;

enum class SegmentStrategy : std::uint8_t { cost, speed, memory, none };

struct SuperNeuronsSettings {
  SegmentStrategy recompute = SegmentStrategy::cost;
  bool offloads = true, offloads_dense = false;
  Bytes min_bytes = 0;
};

bool computes_much(const Op& op) {
  return op.operator_class == OperatorClass::convolution || op.operator_class == OperatorClass::gemm ||
         op.operator_class == OperatorClass::attention;
}

class SuperNeurons {
 public:
  SuperNeurons(const StepProfile& profile, Bytes budget, const SuperNeuronsSettings& settings)
      : p_(profile),
        t_(profile.trace()),
        flow_(profile.flow()),
        budget_(budget),
        settings_(settings),
        dropped_(profile.trace().storages.size()) {}

  MemoryPlan plan() {
    for (const Pass& pass : passes_in_turn(t_)) gather(pass);
    std::ranges::stable_sort(in_order_, {}, [&](StorageId s) { return flow_.writers(s).front(); });
    choose_strategies();
    while (!find_reruns()) {
    }
    MemoryPlan plan;
    if (settings_.offloads) offload(plan);
    add_reruns(plan);
    std::ranges::sort(plan.storages, {}, &StorageDecision::storage);
    return plan;
  }

 private:
  // A storage that is dropped between its last use in forward and its first in backward.
  struct Dropped {
    Gap gap;
    std::size_t segment = 0;
    OpId at = kNoOp;  // made again before this op
  };
  struct Segment {
    Bytes bytes = 0;        // of what is dropped
    bool is_large = false;  // more than l_peak
  };

  void gather(const Pass& pass) {
    std::vector<std::size_t> segment_of(pass.backward - pass.begin);
    segments_.emplace_back();
    for (OpId id = pass.begin; id < pass.backward; ++id) {
      if (computes_much(t_.ops[id])) segments_.emplace_back();
      segment_of[id - pass.begin] = segments_.size() - 1;
    }
    for (const Gap& gap : p_.gaps()) {
      if (gap.wraps || gap.after < pass.begin || gap.after >= pass.backward || gap.before < pass.backward ||
          p_.held(gap.storage) < settings_.min_bytes || !is_saved_activation(t_, flow_, pass, gap.storage))
        continue;
      const auto writers = flow_.writers(gap.storage);
      if (writers.empty() || writers.front() < pass.begin || writers.back() >= pass.backward) continue;
      if (std::ranges::any_of(writers, [&](OpId id) { return computes_much(t_.ops[id]); })) {
        if (is_offloaded(writers)) checkpoints_.push_back(gap);
      } else if (settings_.recompute != SegmentStrategy::none && insertion_point(t_, gap.before) > gap.after + 1) {
        const std::size_t segment = segment_of[writers.front() - pass.begin];
        dropped_[gap.storage] = Dropped{gap, segment, kNoOp};
        segments_[segment].bytes += p_.held(gap.storage);
        in_order_.push_back(gap.storage);
      }
    }
    for (OpId id = pass.backward; id < pass.end; ++id) l_peak_ = std::max(l_peak_, touched(id));
  }

  bool is_offloaded(std::span<const OpId> writers) const {
    return std::ranges::any_of(writers, [&](OpId id) {
      return t_.ops[id].operator_class == OperatorClass::convolution ||
             (settings_.offloads_dense && computes_much(t_.ops[id]));
    });
  }

  // What the step itself has made, of all that an op of backward uses.
  Bytes touched(OpId id) const {
    if (t_.ops[id].phase != Phase::backward) return 0;
    std::set<StorageId> storages;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (!t_.storages[use.storage].preexisting) storages.insert(use.storage);
    Bytes bytes = 0;
    for (const StorageId s : storages) bytes += p_.held(s);
    return bytes;
  }

  void choose_strategies() {
    for (Segment& segment : segments_)
      segment.is_large = settings_.recompute == SegmentStrategy::memory ||
                         (settings_.recompute == SegmentStrategy::cost && segment.bytes > l_peak_);
  }

  // --- what runs again

  bool is_away(StorageId s, OpId at) const {
    return dropped_[s] && dropped_[s]->gap.after < at && at <= dropped_[s]->at;
  }

  void find_points() {
    std::vector<OpId> first(segments_.size(), kNoOp);
    for (std::optional<Dropped>& d : dropped_) {
      if (!d) continue;
      d->at = insertion_point(t_, d->gap.before);
      first[d->segment] = std::min(first[d->segment], d->at);
    }
    for (std::optional<Dropped>& d : dropped_)
      if (d && !segments_[d->segment].is_large) d->at = first[d->segment];
  }

  // What cannot run again without a layer that computes much stays, a checkpoint itself. That may move points of
  // others: false.
  bool find_reruns() {
    find_points();
    reruns_.clear();
    inputs_.clear();
    bool all_stay_dropped = true;
    for (const StorageId s : in_order_) {
      if (!dropped_[s]) continue;
      const OpId at = dropped_[s]->at;
      const auto rerun = rerun_ops(
          p_, s, at, [&](StorageId other) { return other != s && is_away(other, at); }, kMostRerunOps);
      if (!rerun || std::ranges::any_of(rerun->ops, [&](OpId id) { return computes_much(t_.ops[id]); })) {
        segments_[dropped_[s]->segment].bytes -= p_.held(s);
        dropped_[s].reset();
        all_stay_dropped = false;
        continue;
      }
      reruns_[at].insert(rerun->ops.begin(), rerun->ops.end());
      for (const StorageId input : rerun->inputs) {
        const auto known = inputs_.emplace(input, at).first;
        known->second = std::min(known->second, at);
      }
    }
    choose_strategies();
    return all_stay_dropped;
  }

  // --- what goes to the host

  void offload(MemoryPlan& plan) const {
    SwapSchedule schedule(p_, budget_);
    for (const std::optional<Dropped>& d : dropped_)
      if (d) schedule.memory().remove(d->gap.storage, d->gap.after + 1, d->at - 2);
    std::vector<Gap> order;  // the least recently used first
    for (Gap gap : checkpoints_) {
      if (const auto input = inputs_.find(gap.storage); input != inputs_.end() && input->second < gap.before) {
        gap.before = input->second;
        gap.end = std::min(gap.end, p_.start(device_op_from(gap.before)));
      }
      if (gap.after + 1 < gap.before && gap.begin < gap.end) order.push_back(gap);
    }
    std::ranges::stable_sort(order, {}, &Gap::after);
    for (const Gap& gap : order) {
      if (schedule.memory().peak() <= budget_) break;
      if (!schedule.is_over(gap.after + 1, gap.before - 1)) continue;
      if (const auto swap = schedule.place(gap)) schedule.commit(*swap);
    }
    schedule.queue_copies();
    plan.tiers.push_back(to_host());
    plan.storages = schedule.decisions();
  }

  OpId device_op_from(OpId id) const {
    while (id + 1 < t_.ops.size() && !runs_on_device(t_.ops[id].kind)) ++id;
    return id;
  }

  // --- the plan

  void add_reruns(MemoryPlan& plan) const {
    const auto behind_fetches = static_cast<std::uint32_t>(plan.storages.size()) + 1;
    std::map<StorageId, StorageDecision> decisions;
    for (const std::optional<Dropped>& d : dropped_) {
      if (!d) continue;
      StorageDecision& decision = decisions[d->gap.storage];
      decision.storage = d->gap.storage;
      decision.drops.push_back({{d->gap.after, true, 1}});
    }
    for (const auto& [at, ops] : reruns_) {
      std::uint32_t order = behind_fetches;
      for (const std::vector<OpId>& group : groups_of(at, {ops.begin(), ops.end()})) {
        plan.reruns.push_back({{at, false, order++}, group});
        for (const StorageId s : last_used_in(at, group, ops)) decisions[s].drops.push_back({{at, false, order}});
        ++order;
      }
    }
    for (auto& [storage, decision] : decisions) plan.storages.push_back(std::move(decision));
  }

  // Is what is made at this point of a segment that is computed again layer by layer?
  bool is_by_layer(OpId at) const {
    return std::ranges::any_of(
        dropped_, [&](const std::optional<Dropped>& d) { return d && d->at == at && segments_[d->segment].is_large; });
  }

  // Ops of one group run as one re-run. A new one begins wherever all that passes on can wait by itself between two.
  std::vector<std::vector<OpId>> groups_of(OpId at, const std::vector<OpId>& ops) const {
    if (!is_by_layer(at)) return {ops};
    std::map<StorageId, std::pair<std::size_t, std::size_t>> bound;  // from its first op to the last that it binds
    for (std::size_t i = 0; i < ops.size(); ++i)
      for (const Use& use : t_.uses_of(t_.ops[ops[i]])) {
        if (t_.storages[use.storage].preexisting) continue;
        const auto known = bound.find(use.storage);
        if (known == bound.end() && use.access == Access::write) bound[use.storage] = {i, i};
        if (known != bound.end() && (use.access == Access::write || !is_away(use.storage, at)))
          known->second.second = i;
      }
    std::vector<bool> bound_to_next(ops.size(), false);
    for (const auto& [storage, range] : bound)
      std::fill(bound_to_next.begin() + static_cast<std::ptrdiff_t>(range.first),
                bound_to_next.begin() + static_cast<std::ptrdiff_t>(range.second), true);
    std::vector<std::vector<OpId>> groups(1);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      groups.back().push_back(ops[i]);
      if (!bound_to_next[i] && i + 1 < ops.size()) groups.emplace_back();
    }
    return groups;
  }

  // Of what an earlier group has made: what no later one reads, and the program only after it is made once more.
  std::vector<StorageId> last_used_in(OpId at, const std::vector<OpId>& group, const std::set<OpId>& ops) const {
    std::set<StorageId> made_before, read_here, read_later;
    for (const OpId id : ops)
      for (const Use& use : t_.uses_of(t_.ops[id])) {
        const bool is_read = use.access == Access::read;
        if (id < group.front() && !is_read) made_before.insert(use.storage);
        if (id >= group.front() && id <= group.back() && is_read) read_here.insert(use.storage);
        if (id > group.back() && is_read) read_later.insert(use.storage);
      }
    std::vector<StorageId> last;
    for (const StorageId s : read_here)
      if (made_before.contains(s) && !read_later.contains(s) && is_away(s, at) && dropped_[s]->at != at)
        last.push_back(s);
    return last;
  }

  const StepProfile& p_;
  const Trace& t_;
  const Dataflow& flow_;
  const Bytes budget_;
  const SuperNeuronsSettings settings_;
  std::vector<std::optional<Dropped>> dropped_;  // by storage
  std::vector<StorageId> in_order_;              // of these, as forward makes them
  std::vector<Segment> segments_;
  std::vector<Gap> checkpoints_;           // that may go to the host
  std::map<OpId, std::set<OpId>> reruns_;  // by the op before which they stand
  std::map<StorageId, OpId> inputs_;       // the first re-run that starts from it
  Bytes l_peak_ = 0;
};

SuperNeuronsSettings settings_from(const PolicyArguments& arguments) {
  SuperNeuronsSettings settings;
  const std::string& recompute = arguments.choice("recompute");
  if (recompute == "speed") settings.recompute = SegmentStrategy::speed;
  if (recompute == "memory") settings.recompute = SegmentStrategy::memory;
  if (recompute == "none") settings.recompute = SegmentStrategy::none;
  settings.offloads = arguments.choice("offload") != "none";
  settings.offloads_dense = arguments.choice("offload") == "dense";
  settings.min_bytes = arguments.bytes("min_bytes");
  return settings;
}

const RegisterPlanner registered_superneurons{
    {.name = "superneurons",
     .sentence = "computes cheap layers again, and swaps outputs of convolutions to the host (Wang et al. 2018)",
     .parameters = {choice("recompute", "cost", {"cost", "speed", "memory", "none"},
                           "speed: a segment once, and kept; memory: for each layer anew; cost: speed where a segment "
                           "takes no more than backward of the largest layer."),
                    choice("offload", "conv", {"conv", "dense", "none"},
                           "conv: outputs of convolutions; dense: of matrix products and attention, too."),
                    bytes("min_bytes", "1MiB", 0, "smaller storages stay.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const SuperNeuronsSettings settings = settings_from(arguments);
       return [settings](const StepProfile& profile, const Budget& budget, const Machine& machine, const Pricer&) {
         if (settings.offloads) require_host("superneurons", machine);
         return SuperNeurons(profile, budget.device, settings).plan();
       };
     }}};

}  // namespace
}  // namespace memwall
