#include "policies/sharding/deepspeed_super_offload.h"

#include <algorithm>

#include "policies/sharding/deepspeed_partitioned_step.h"

namespace memwall {

SuperOffload::SuperOffload(DeepSpeedProgram& program, const std::vector<DeepSpeedSubGroup>& groups,
                           const DeepSpeedSettings& settings)
    : p_(program), groups_(groups), settings_(settings) {
  if (!settings.super_offload) return;
  std::int64_t largest = 0;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    for (const StorageId parameter : groups[k].parameters) group_of_[parameter] = k;
    missing_.push_back(groups[k].parameters.size());
    largest = std::max(largest, groups[k].elements);
  }
  buffer_ = program.host_storage(4 * largest, StorageKind::gradient, "worker_gradients");
  arrivals_.emplace_back();
}

void SuperOffload::arrived(InsertionPoint point, std::uint16_t stream, const Storages& parameters) {
  if (!settings_.super_offload) return;
  bool completes = false;
  for (const StorageId parameter : parameters) {
    const auto found = group_of_.find(parameter);
    if (found == group_of_.end() || missing_[found->second] == 0 || --missing_[found->second] > 0) continue;
    completes = true;
    if (groups_[found->second].on_host) arrivals_.back().push_back({point, found->second});
  }
  if (completes) p_.synchronize_stream(point, stream);
}

void SuperOffload::end_step() {
  if (!settings_.super_offload) return;
  for (std::size_t k = 0; k < groups_.size(); ++k) missing_[k] = groups_[k].parameters.size();
  arrivals_.emplace_back();
}

void SuperOffload::update_beside(std::size_t number, OpId last_backward, InsertionPoint point, DeepSpeedUpdate& update,
                                 StorageId gradients) {
  if (!settings_.super_offload || settings_.gradient_clipping || arrivals_[number].empty()) return;
  if (!thread_) thread_ = p_.edit().builder().add_thread("deepspeed.cpu_adam_worker");
  std::int64_t elements = 0;
  OpId beside = kNoOp;  // behind it stands what the worker does last
  for (const Arrival& arrival : arrivals_[number]) {
    const std::int64_t own = groups_[arrival.group].elements;
    elements += own;
    if (arrival.point.op == last_backward) continue;
    beside = arrival.point.op + 1;
    p_.hand_over({beside, true}, arrival.point.op, thread_);
    update.by_worker({beside, true}, own, gradients, buffer_, thread_);
  }
  if (beside != kNoOp) p_.hand_over(point, beside);
  // The worker takes what the end of backward has completed once it is done with the rest, while the host waits for it.
  for (const Arrival& arrival : arrivals_[number])
    if (arrival.point.op == last_backward)
      update.by_worker(point, groups_[arrival.group].elements, gradients, buffer_, {});
  update.take_over(point, elements);
}

void SuperOffload::finish(InsertionPoint point, const DeepSpeedSubGroup& group, DeepSpeedUpdate& update,
                          StorageId gradients, const Storages& sent) {
  update.unscale_on_host(point, group.elements, gradients);
  if (settings_.gradient_clipping) {
    update.by_worker(point, group.elements, gradients, buffer_, {});
    update.take_over(point, group.elements);
  }
  update.cast_states(point, group.elements, sent);
}

}  // namespace memwall
