#include "policies/sharding/deepspeed_fetch_plan.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "policies/sharding/deepspeed_gradient_swap.h"
#include "policies/sharding/deepspeed_layout.h"
#include "policies/sharding/deepspeed_module_calls.h"
#include "sim/error.h"

namespace memwall {
namespace {

// The coordinator's state within one micro-batch.
class Coordinator {
 public:
  Coordinator(FetchPlan& plan, const DeepSpeedSettings& settings) : plan_(plan), settings_(settings) {
    for (const StorageId id : plan.persistent) persistent_ += plan.elements.at(id);
    free_buffers_ = settings.param_buffer_count;
  }

  // Of one micro-batch: hooks [begin, end), calls [first, last).
  void run(std::size_t begin, std::size_t end, std::size_t first, std::size_t last) {
    last_ = last;
    fetched_for_.clear();
    queue_.clear();
    active_.clear();
    live_ = 0;
    for (std::size_t k = first; k < last; ++k)
      for (const StorageId id : plan_.calls[k].parameters) queue_.push_back({id, static_cast<std::int64_t>(k)});
    std::size_t begun = first;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t k = plan_.hooks[i].call;
      for (const StorageId id : plan_.calls[k].parameters) active_[id] += plan_.hooks[i].behind ? -1 : 1;
      if (plan_.hooks[i].behind) {
        release(k, begun);
        continue;
      }
      fetch(k);
      prefetch(k);
      ++begun;
    }
    release_rest(plan_.hooks[end - 1].call);
  }

 private:
  struct InTrace {
    StorageId parameter = kNoStorage;
    std::int64_t step = 0;
  };

  std::int64_t fetched_for(StorageId id) const {
    const auto found = fetched_for_.find(id);
    return found == fetched_for_.end() ? std::numeric_limits<std::int64_t>::min() : found->second;
  }

  bool is_there(StorageId id) const { return plan_.persistent.contains(id) || available_.contains(id); }

  void gather(StorageId id) {
    available_.insert(id);
    live_ += plan_.elements.at(id);
    plan_.most_live = std::max(plan_.most_live, live_ + persistent_);
  }

  void fetch(std::size_t k) {
    ModuleCall& call = plan_.calls[k];
    for (const StorageId id : call.parameters)
      if (!is_there(id)) {
        if (is_on_nvme(id)) {
          take_buffer(id);
          call.read.push_back(id);
        }
        gather(id);
        call.fetched.push_back(id);
        in_flight_.insert(id);
      }
    for (const StorageId id : call.parameters)
      if (in_flight_.erase(id) > 0) call.awaited.push_back(id);
  }

  void prefetch(std::size_t k) {
    ModuleCall& call = plan_.calls[k];
    const auto step = static_cast<std::int64_t>(k);
    std::size_t discarded = 0, not_fetched = 0;
    for (const StorageId id : call.parameters) not_fetched += fetched_for(id) < step ? 1 : 0;
    for (; !queue_.empty() && discarded < not_fetched; ++discarded) {
      fetched_for_[queue_.front().parameter] = queue_.front().step;
      queue_.pop_front();
    }
    const std::int64_t most = std::min(settings_.max_live_parameters - live_, settings_.prefetch_bucket_size);
    for (std::int64_t elements = 0; !queue_.empty() && elements < most; queue_.pop_front()) {
      const auto [id, used_at] = queue_.front();
      if (!is_there(id) && is_on_nvme(id)) break;  // keeps the order
      fetched_for_[id] = std::max(fetched_for(id), used_at);
      if (is_there(id)) continue;
      elements += plan_.elements.at(id);
      gather(id);
      in_flight_.insert(id);
      call.prefetched.push_back(id);
    }
    if (!plan_.on_nvme.empty()) read_ahead(call);
  }

  bool is_on_nvme(StorageId id) const { return plan_.on_nvme.contains(id) && !buffered_.contains(id); }

  void take_buffer(StorageId id) {
    if (free_buffers_ == 0)
      throw UsageError("Policy 'deepspeed': not enough buffers for swapping in: offload_param_buffer_count=" +
                       std::to_string(settings_.param_buffer_count) +
                       " hold partitions of parameters that are gathered, and one more is needed; expected a larger "
                       "number, or a smaller max_reuse_distance.");
    --free_buffers_;
    buffered_.insert(id);
  }

  // As far as twice what is being gathered, and the buffers, go.
  void read_ahead(ModuleCall& call) {
    std::int64_t in_flight = 0, considered = 0;
    for (const StorageId id : in_flight_) in_flight += plan_.elements.at(id);
    for (const InTrace& next : queue_) {
      if (considered > 2 * in_flight || free_buffers_ == 0) break;
      if (!is_there(next.parameter) && is_on_nvme(next.parameter)) {
        take_buffer(next.parameter);
        call.read_ahead.push_back(next.parameter);
      }
      considered += plan_.elements.at(next.parameter);
    }
  }

  // Unless a call that has not ended needs it, it is used again soon, or was passed over by the prefetch because it is
  // there. What leaves need does not count for another module: DeepSpeed looks below later modules only where the one
  // that it releases is a leaf.
  void release(std::size_t k, std::size_t begun) {
    std::set<StorageId> candidates(plan_.calls[k].parameters.begin(), plan_.calls[k].parameters.end());
    std::erase_if(candidates, [&](StorageId id) {
      return active_.at(id) > 0 || fetched_for(id) > static_cast<std::int64_t>(begun);
    });
    std::int64_t traversed = 0;
    for (std::size_t later = begun; later < last_ && traversed < settings_.max_reuse_distance; ++later)
      for (const StorageId id : plan_.calls[later].parameters) {
        if (plan_.calls[later].is_leaf && !plan_.calls[k].is_leaf) break;
        candidates.erase(id);
        traversed += plan_.elements.at(id);
      }
    for (const StorageId id : candidates) drop(k, id);
  }

  void drop(std::size_t k, StorageId id) {
    if (available_.erase(id) == 0) return;
    live_ -= plan_.elements.at(id);
    free_buffers_ += static_cast<std::int64_t>(buffered_.erase(id));
    plan_.calls[k].released.push_back(id);
  }

  // The end of backward releases what is left.
  void release_rest(std::size_t k) {
    const std::set<StorageId> left = available_;
    for (const StorageId id : left) drop(k, id);
  }

  FetchPlan& plan_;
  const DeepSpeedSettings& settings_;
  std::size_t last_ = 0;
  std::map<StorageId, int> active_;  // calls that have begun, and not ended, by parameter that they need
  std::set<StorageId> available_, in_flight_;
  std::set<StorageId> buffered_;  // of those on NVMe: whose partition is in a buffer, or on its way there
  std::int64_t free_buffers_ = 0;
  std::map<StorageId, std::int64_t> fetched_for_;
  std::deque<InTrace> queue_;
  std::int64_t live_ = 0,
               persistent_ = 0;  // elements: gathered by the micro-batch; those that stay, which do not count
};

// The first max_in_cpu elements stay on the host, and what is too small to be swapped. Source: deepspeed/runtime/
// swap_tensor/partitioned_param_swapper.py (swappable_tensor, MIN_AIO_BYTES).
void place_on_nvme(FetchPlan& plan, const ZeroAnalysis& analysis, const DeepSpeedSettings& settings) {
  std::int64_t in_cpu = 0;
  for (const StorageId id : analysis.parameters) {
    const std::int64_t share = (plan.elements.at(id) + settings.ranks - 1) / settings.ranks;
    const bool is_large = is_swappable(share * plan.element.at(id), settings.aio);
    if (!is_large || plan.persistent.contains(id) || in_cpu + share <= settings.max_in_cpu) {
      in_cpu += share;
      continue;
    }
    if (share > settings.buffer_size)
      throw UsageError("Policy 'deepspeed': buffer_size=" + std::to_string(settings.buffer_size) +
                       " elements do not hold a partition of " + std::to_string(share) + "; expected at least that.");
    plan.on_nvme.insert(id);
  }
}

}  // namespace

FetchPlan plan_fetches(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis,
                       const DeepSpeedSettings& settings) {
  FetchPlan plan;
  std::int64_t persistent = 0;
  plan.element = element_sizes(trace, flow, analysis.parameters);
  for (const StorageId id : analysis.parameters) {
    const std::int64_t elements = trace.storages[id].bytes / plan.element.at(id);
    plan.elements[id] = elements;
    if (elements > settings.param_persistence_threshold || persistent + elements > settings.model_persistence_threshold)
      continue;
    plan.persistent.insert(id);
    persistent += elements;
  }
  if (settings.offload_param == OffloadDevice::nvme) place_on_nvme(plan, analysis, settings);
  ModuleCalls(trace, analysis, plan, settings.module_granularity_threshold).run();
  Coordinator coordinator(plan, settings);
  for (std::size_t begin = 0, first = 0; begin < plan.hooks.size();) {
    const std::size_t pass = plan.calls[plan.hooks[begin].call].pass;
    std::size_t end = begin, last = first;
    while (end < plan.hooks.size() && plan.calls[plan.hooks[end].call].pass == pass) ++end;
    while (last < plan.calls.size() && plan.calls[last].pass == pass) ++last;
    coordinator.run(begin, end, first, last);
    begin = end;
    first = last;
  }
  return plan;
}

}  // namespace memwall
